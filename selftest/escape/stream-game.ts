// What a tool may do with its prepared stream besides writing the frame, and what must come of it: how often the
// provider is reached, and whether the broker's record is an answer or a refusal.
// Source: native/cage-probe/stream-games.c; the protocol's prepared stream: one exact frame, once.
import type { BrokeredRun } from '../../host/brokered-run.js'
import { systemClock } from '../../native/clock.js'
import type { BrokerBench } from '../broker-bench.js'
import { type HostileRun, runProbe } from './hostile-run.js'

type Hits = 'at most one' | 'none' | 'one'

export interface StreamGame {
  readonly name: string
  readonly aim: string
  readonly hits: Hits
  /** A line that the tool must have seen. */
  readonly sees?: string
}

export const STREAM_GAMES: readonly StreamGame[] = [
  {
    name: 'surplus-descriptors',
    aim: 'twenty descriptors sent along: nobody may hold one afterwards',
    hits: 'at most one',
    sees: 'held 0',
  },
  { name: 'changed-request', aim: 'a changed request, in its own file and on the stream', hits: 'none' },
  { name: 'second-request', aim: 'the request twice', hits: 'at most one' },
  { name: 'many-writers', aim: 'the request from eight processes at once', hits: 'at most one' },
  { name: 'early-end', aim: 'an end before the first byte', hits: 'none' },
  { name: 'half-frame', aim: 'an end inside the frame', hits: 'none' },
  { name: 'half-close', aim: 'an end after the frame, which is allowed', hits: 'one' },
  { name: 'through-pipe', aim: 'the frame spliced from a pipe, which is the same bytes', hits: 'one' },
  { name: 'signals', aim: 'an owner and a signal on the stream, then the frame', hits: 'one' },
]

export interface GameResult {
  readonly name: string
  readonly aim: string
  readonly ok: boolean
  /** What came of it, or what was found instead. */
  readonly found: string
  readonly ms: number
}

/** Times a story as it is told. */
export async function timed(story: () => Promise<Omit<GameResult, 'ms'>>): Promise<GameResult> {
  const startedBootNs = systemClock.bootNs()
  const told = await story()
  return { ...told, ms: Math.round(Number(systemClock.bootNs() - startedBootNs) / 1e6) }
}

const ALLOWED: Readonly<Record<Hits, readonly number[]>> = { none: [0], one: [1], 'at most one': [0, 1] }

export function playGame(bench: BrokerBench, game: StreamGame): Promise<GameResult> {
  return timed(async () => {
    const played = await runProbe(bench, { profile: 'native', exec: 'once' }, ['stream', game.name])
    return judgeGame(game, played)
  })
}

/** A provider that was reached is recorded as an answer, or as a dispatch that may have been one. */
function compare(hits: number, outcome: BrokeredRun['outcome']): { agrees: boolean; record: string } {
  if (outcome.kind === 'response') return { agrees: hits === 1, record: 'an answer' }
  const wasDispatched = outcome.failure.receipt.body.dispatchKnowledge !== 'not_started'
  return { agrees: hits === 0 || wasDispatched, record: wasDispatched ? 'a dispatch' : 'a refusal' }
}

export function judgeGame(game: StreamGame, { hits, run, said }: HostileRun): Omit<GameResult, 'ms'> {
  const { aim, name, sees } = game
  const lines = said.trimEnd().split('\n')
  const { agrees, record } = compare(hits, run.outcome)
  const ok = ALLOWED[game.hits].includes(hits) && agrees && (sees === undefined || lines.includes(sees))
  const words = lines.filter(line => line !== '').join(', ')
  return { name, aim, ok, found: `provider requests: ${hits}, recorded as ${record}; the tool saw: ${words}` }
}
