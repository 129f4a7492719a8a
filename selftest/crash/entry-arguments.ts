// Owns the command line of the daemons under test: that of the daemon itself, with keys by file, and how it is steered.
import { writeSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { ERROR_CODES } from '../../protocol/error-codes.js'
import { isBrokerError } from '../../protocol/errors.js'
import { Steering } from './steering.js'

const STANDARD_ERROR = 2

/** @param keys names of the keys that the daemon takes. */
export function entryArguments(keys: readonly string[]): {
  readonly config: string
  readonly keyFiles: Readonly<Record<string, string>>
  readonly steering: Steering
} {
  const names = ['config', 'end-at', 'ahead-ms', ...keys.map(key => `${key}-key-file`)]
  const options = Object.fromEntries(names.map(name => [name, { type: 'string' } as const]))
  const { values } = parseArgs({ options, strict: true, allowPositionals: false })
  const text = (name: string): string => String(values[name] ?? '')
  const endAt = values['end-at'] === undefined ? null : text('end-at')
  return {
    config: text('config'),
    keyFiles: Object.fromEntries(keys.map(key => [key, text(`${key}-key-file`)])),
    steering: new Steering({ endAt, aheadMs: Number(values['ahead-ms'] ?? 0) }),
  }
}

/** @returns what was started; a refusal is the last line of the log, as a daemon ends. */
export async function startedOrSaid<T>(start: () => Promise<T>): Promise<T> {
  try {
    return await start()
  } catch (error) {
    if (!isBrokerError(error)) throw error
    const { code, message: sentence } = error
    writeSync(STANDARD_ERROR, `${JSON.stringify({ level: 'error', event: 'failed', code, sentence })}\n`)
    process.exit(ERROR_CODES[code].exitCode)
  }
}
