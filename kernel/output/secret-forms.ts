// Owns: the forms that secrets of well-known makers have, as they are looked for in what a provider delivered.
// Must never: return what was found: only which form it has.
// Source: the prefixes that their makers document; RFC 7468 for keys, RFC 7519 for tokens.

/** Each has a prefix that means a secret and a length that no prose has, and a bound: a provider chooses the text. */
const FORMS: readonly (readonly [name: string, form: RegExp])[] = [
  ['a private key', /-----BEGIN (?:[A-Z]+ ){0,3}PRIVATE KEY-----/],
  ['an AWS access key', /\b(?:AKIA|ASIA)[0-9A-Z]{16}\b/],
  ['a GitHub token', /\bgh[pousr]_[A-Za-z0-9]{36}/],
  ['a GitHub fine-grained token', /\bgithub_pat_[A-Za-z0-9_]{40}/],
  ['a GitLab token', /\bglpat-[A-Za-z0-9_-]{20}/],
  ['a Slack token', /\bxox[abprs]-[A-Za-z0-9-]{20}/],
  ['a Google key', /\bAIza[A-Za-z0-9_-]{35}/],
  ['a Stripe key', /\b[rs]k_live_[A-Za-z0-9]{20}/],
  ['an npm token', /\bnpm_[A-Za-z0-9]{36}/],
  ['a signed web token', /\beyJ[A-Za-z0-9_-]{16,256}\.eyJ[A-Za-z0-9_-]{16}/],
]

/** @returns the name of the first form that stands in the bytes; null when none does. */
export function secretFormIn(bytes: Uint8Array): string | null {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
  return FORMS.find(([, form]) => form.test(text))?.[0] ?? null
}
