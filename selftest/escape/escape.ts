// The escape suite: a hostile tool in real cages, with a real prepared stream, tries everything that is known to be
// tried. It needs no installation and touches none. Whatever succeeds is named; the plain tool works afterwards.
import { systemClock } from '../../native/clock.js'
import { BrokerBench } from '../broker-bench.js'
import { type Attempt, type CageKind, judgeAnswer, type Verdict } from './attempt.js'
import { CONNECTION_ATTEMPTS } from './attempts-connections.js'
import { MACHINE_ATTEMPTS } from './attempts-machine.js'
import { PROCESS_ATTEMPTS } from './attempts-processes.js'
import { Bystander } from './bystander.js'
import { runPlainTool, runProbe } from './hostile-run.js'
import { outlivesLauncher } from './killed-launcher.js'
import { outlivesTool } from './left-behind.js'
import { attemptsHere, readReport } from './probe-report.js'
import { type GameResult, playGame, STREAM_GAMES, timed } from './stream-game.js'

export const ATTEMPTS: readonly Attempt[] = [...PROCESS_ATTEMPTS, ...CONNECTION_ATTEMPTS, ...MACHINE_ATTEMPTS]

/** Node's filter is Python's, word for word; a test holds that. */
export const CAGE_KINDS: readonly CageKind[] = [
  { profile: 'native', exec: 'once' },
  { profile: 'native', exec: 'allowed' },
  { profile: 'node', exec: 'once' },
  { profile: 'node', exec: 'allowed' },
]

/** One attempt in one kind of cage. */
export interface AttemptAnswer extends CageKind {
  readonly answer: string
  readonly verdict: Verdict
  /** How far it got, where that counts: processes, mebibytes, families. */
  readonly count: number | null
}

export interface AttemptResult {
  readonly attempt: Attempt
  readonly answers: readonly AttemptAnswer[]
}

export interface EscapeFindings {
  readonly cage: { readonly uid: number; readonly launcherUid: number }
  readonly attempts: readonly AttemptResult[]
  readonly streams: readonly GameResult[]
  /** What was seen from outside, and the main job in the next cage. */
  readonly outside: readonly GameResult[]
}

type Story = Omit<GameResult, 'ms'>

export function didHold({ attempts, outside, streams }: EscapeFindings): boolean {
  const closed = attempts.every(({ answers }) => answers.every(({ verdict }) => verdict !== 'open'))
  return closed && [...streams, ...outside].every(({ ok }) => ok)
}

export async function tryEscapes(): Promise<EscapeFindings> {
  const bench = await BrokerBench.open()
  const identity = bench.trial.identities.cage
  const bystander = await Bystander.start(identity)
  try {
    const { attempts, outside } = await tryAll(bench, bystander)
    const streams: GameResult[] = []
    for (const game of STREAM_GAMES) streams.push(await playGame(bench, game))
    const launcherUid = process.geteuid?.() ?? 0
    return {
      cage: { uid: identity?.uid ?? launcherUid, launcherUid },
      attempts,
      streams,
      outside: [
        ...outside,
        await timed(async () => judgeTool(await outlivesTool(identity))),
        await timed(async () => judgeLauncher(await outlivesLauncher(identity))),
        await timed(() => doMainJob(bench)),
      ],
    }
  } finally {
    await bystander.stop()
    await bench.close()
  }
}

/** Every attempt in every kind of cage, and what was left and reached of it. */
async function tryAll(
  bench: BrokerBench,
  bystander: Bystander,
): Promise<{ attempts: AttemptResult[]; outside: GameResult[] }> {
  const found = new Map(attemptsHere(ATTEMPTS).map(attempt => [attempt, [] as AttemptAnswer[]]))
  const broker = bench.trial.layout.broker.socket
  const startedBootNs = systemClock.bootNs()
  let hits = 0
  for (const kind of CAGE_KINDS) {
    const hostile = await runProbe(bench, kind, ['attempts', String(bystander.pid), broker])
    const report = readReport(hostile.said, ATTEMPTS)
    for (const [attempt, answers] of found) {
      const { answer, count } = report.get(attempt.name)!
      answers.push({ ...kind, answer, count, verdict: judgeAnswer(attempt, answer, kind) })
    }
    hits += hostile.hits
  }
  const attempts = [...found].map(([attempt, answers]) => ({ attempt, answers }))
  const ms = Math.round(Number(systemClock.bootNs() - startedBootNs) / 1e6)
  const judged = [judgeBystander(bystander), judgeHits(hits)]
  return { attempts, outside: judged.map(story => ({ ...story, ms })) }
}

function judgeBystander({ end }: Bystander): Story {
  const aim = 'signals and limits for a process outside, of the same uid and group of processes'
  return {
    name: 'bystander',
    aim,
    ok: end === null,
    found: end === null ? 'it lives on' : `it ended: ${end}`,
  }
}

function judgeTool(isLeft: boolean): Story {
  const aim = 'a process that forked twice, left its session and hears no signal outlives the tool'
  const found = isLeft ? 'some of the cage is left' : 'nothing is left, and the stream is closed'
  return { name: 'outlive-tool', aim, ok: !isLeft, found }
}

function judgeHits(hits: number): Story {
  const aim = 'a request without the frame'
  return {
    name: 'provider',
    aim,
    ok: hits === 0,
    found: `provider requests by all attempts together: ${hits}`,
  }
}

function judgeLauncher(left: string | null): Story {
  const aim = 'the same outlives a launcher that is killed'
  const found = left === null ? 'nothing is left, and the stream is closed' : `left: ${left}`
  return { name: 'outlive-launcher', aim, ok: left === null, found }
}

async function doMainJob(bench: BrokerBench): Promise<Story> {
  const { hits, run } = await runPlainTool(bench)
  const status = run.outcome.kind === 'response' ? run.outcome.response.status : null
  const found = `provider requests: ${hits}, verified outcome ${status === null ? 'a refusal' : `HTTP ${status}`}`
  const ok = hits === 1 && status === 201 && run.tool.exitCode === 0
  return { name: 'main-job', aim: 'the plain tool, in the next cage', ok, found }
}
