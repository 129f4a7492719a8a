// Owns how a selftest is told: its lines or its one document, and exit 1 where anything failed.
import { type CommonOptions, print } from './output.js'

export interface SelftestResult {
  readonly ok: boolean
  readonly document: { readonly schema: string; readonly [member: string]: unknown }
  readonly lines: readonly string[]
}

export function tell(options: CommonOptions, { document, lines, ok }: SelftestResult): void {
  print(options, document, lines)
  if (!ok) process.exitCode = 1
}
