// Owns the forms of a secret that are looked for as bytes: raw, as UTF-16, and in the encodings that programs
// write text in, at every alignment. Must never hold one as a JavaScript string; `wipe` reaches all of them.
// Source: RFC 4648; broker wire §13.

import type { CredentialPlacement } from '../../protocol/placement.js'
import {
  base32Core,
  base64Bytes,
  base64Core,
  hexBytes,
  rewrittenBytes,
  utf16Bytes,
} from './secret-encodings.js'

export type PatternForm = 'raw' | 'UTF-16' | 'base64' | 'base64url' | 'base32' | 'hex'

export interface Pattern {
  readonly form: PatternForm
  readonly bytes: Buffer
}

/** Shorter encoded pieces of a very short secret stand in ordinary text by chance. */
const MINIMUM_ENCODED_BYTES = 8
/** What a base64 text has that a URL or a JSON text may write otherwise. */
const NOTHING: ReadonlyMap<number, string> = new Map()
const REWRITINGS: readonly ReadonlyMap<number, string>[] = [
  rewriting({ '+': '%2B', '/': '%2F', '=': '%3D' }),
  rewriting({ '+': '%2b', '/': '%2f', '=': '%3d' }),
  rewriting({ '/': '\\/' }),
]

/** Copies of the secret in every form that is looked for. The first is the raw one. */
export function patternsOf(secret: Uint8Array, placement: CredentialPlacement): readonly Pattern[] {
  const encoded = [...base64Patterns(secret, placement), ...base32Patterns(secret), ...hexPatterns(secret)]
  const utf16 = (['little', 'big'] as const).map(order => pattern('UTF-16', utf16Bytes(secret, order)))
  return [pattern('raw', rewrittenBytes(secret, NOTHING)), ...[...utf16, ...encoded].filter(isLongEnough)]
}

function base64Patterns(secret: Uint8Array, placement: CredentialPlacement): Pattern[] {
  const cores = (['base64', 'base64url'] as const).flatMap(form =>
    ([0, 1, 2] as const).map(offset => pattern(form, base64Core(secret, offset, form))),
  )
  const plain = [...cores, ...basicPatterns(secret, placement)]
  return [...plain, ...plain.flatMap(rewrittenPatterns)]
}

/** The header value of Basic: found whole even where the secret alone is too short for its core. */
function basicPatterns(secret: Uint8Array, placement: CredentialPlacement): Pattern[] {
  if (placement.kind !== 'basic_authorization') return []
  const pair = Buffer.concat([Buffer.from(`${placement.user}:`, 'latin1'), secret])
  const encoded = base64Bytes(pair)
  pair.fill(0)
  return [pattern('base64', encoded)]
}

/** Only those that another encoder would change: the others are the same bytes. */
function rewrittenPatterns({ form, bytes }: Pattern): Pattern[] {
  return REWRITINGS.filter(rewritten => bytes.some(byte => rewritten.has(byte))).map(rewritten =>
    pattern(form, rewrittenBytes(bytes, rewritten)),
  )
}

function base32Patterns(secret: Uint8Array): Pattern[] {
  return (['upper', 'lower'] as const).flatMap(letters =>
    ([0, 1, 2, 3, 4] as const).map(offset => pattern('base32', base32Core(secret, offset, letters))),
  )
}

function hexPatterns(secret: Uint8Array): Pattern[] {
  return (['lower', 'upper'] as const).map(letters => pattern('hex', hexBytes(secret, letters)))
}

function isLongEnough({ bytes }: Pattern): boolean {
  return bytes.length >= MINIMUM_ENCODED_BYTES
}

function rewriting(letters: Readonly<Record<string, string>>): ReadonlyMap<number, string> {
  return new Map(Object.entries(letters).map(([letter, text]) => [letter.charCodeAt(0), text]))
}

/** The same memory as a Buffer, so that a wipe reaches it and a search is native. */
function pattern(form: PatternForm, bytes: Uint8Array): Pattern {
  return { form, bytes: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength) }
}
