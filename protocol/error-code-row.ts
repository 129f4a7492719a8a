// Owns one row of the table of error codes: what the peer is told, how a command ends, what the operator does next.
// `peerSees` is the only thing about a fault that crosses a trust line; null means that the connection closes without a byte.
// Source: exit codes after sysexits.h (69, 73, 75).

export interface ErrorCodeRow {
  readonly peerSees: string | null
  readonly exitCode: 0 | 1 | 2 | 69 | 73 | 75
  readonly next: string
}

export const row = (
  peerSees: string | null,
  exitCode: ErrorCodeRow['exitCode'],
  next: string,
): ErrorCodeRow => ({
  peerSees,
  exitCode,
  next,
})
