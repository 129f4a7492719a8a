// Owns the reading of an error code from what Node's network calls throw. Codes only: their messages
// quote addresses, certificates and peer bytes.

/** `ECONNRESET`, `ENOTFOUND`, `ERR_TLS_CERT_ALTNAME_INVALID` …; null when the error carries none. */
export function systemErrorCode(error: unknown): string | null {
  if (!(error instanceof Error) || !('code' in error)) return null
  return typeof error.code === 'string' && /^[A-Z0-9_]{1,64}$/.test(error.code) ? error.code : null
}
