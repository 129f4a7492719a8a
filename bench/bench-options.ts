// Owns what can be asked of a run: which rows, how many rounds, in which form.
import { parseArgs } from 'node:util'
import { BrokerError } from '../protocol/errors.js'
import type { BenchRow } from './row.js'

export interface BenchOptions {
  readonly json: boolean
  /** The table as Markdown, for the page that keeps it. */
  readonly markdown: boolean
  readonly rows: readonly BenchRow[]
  /** Each row's own count unless given. */
  readonly rounds: number | null
  readonly retainedAttempts: number
  /** Where the time of one operation goes, instead of rows. */
  readonly steps: boolean
  /** A CPU profile of both daemons, instead of rows. */
  readonly profile: boolean
}

const RETAINED_ATTEMPTS = 1_000_000

/** @throws BrokerError `usage`. */
export function readOptions(argv: readonly string[], known: readonly BenchRow[]): BenchOptions {
  const values = parse(argv)
  const asked = values.row ?? []
  const foreign = asked.find(id => !known.some(row => row.id === id))
  if (foreign !== undefined)
    throw new BrokerError(
      'usage',
      `--row refused: expected one of ${known.map(({ id }) => id).join(', ')}, got ${foreign}`,
    )
  return {
    json: values.json === true,
    markdown: values.markdown === true,
    rows: asked.length === 0 ? known : known.filter(({ id }) => asked.includes(id)),
    rounds: values.rounds === undefined ? null : count(values.rounds, '--rounds'),
    retainedAttempts: count(values.retained ?? String(RETAINED_ATTEMPTS), '--retained'),
    steps: values.steps === true,
    profile: values.profile === true,
  }
}

function parse(argv: readonly string[]) {
  try {
    return parseArgs({
      args: [...argv],
      options: {
        json: { type: 'boolean' },
        markdown: { type: 'boolean' },
        row: { type: 'string', multiple: true },
        rounds: { type: 'string' },
        retained: { type: 'string' },
        steps: { type: 'boolean' },
        profile: { type: 'boolean' },
      },
    }).values
  } catch (error) {
    throw new BrokerError(
      'usage',
      `bench refused: expected known options, got ${error instanceof Error ? error.message : 'others'}`,
    )
  }
}

function count(text: string, option: string): number {
  if (/^[1-9][0-9]{0,8}$/.test(text)) return Number(text)
  throw new BrokerError('usage', `${option} refused: expected a whole number from 1 on, got ${text}`)
}
