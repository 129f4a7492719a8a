// Owns the form of a row in the table of error codes. Must never hold a row.
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
): ErrorCodeRow => ({ peerSees, exitCode, next })
