// chio selftest cage: the escape suite as a table, an attempt a line: what was tried, which wall stands there, what the
// kernel answered in each kind of cage.
import type { AttemptResult, EscapeFindings } from '../selftest/escape/escape.js'
import { CAGE_KINDS, didHold, tryEscapes } from '../selftest/escape/escape.js'
import type { GameResult } from '../selftest/escape/stream-game.js'
import type { CommonOptions } from './output.js'
import { type SelftestResult, tell } from './selftest-result.js'

const NAME_COLUMNS = 29
const WALL_COLUMNS = 10
const ANSWER_COLUMNS = 24

/** Runs the suite: a line an attempt. It holds when none succeeded, and the main job worked afterwards. */
export async function cageSelftest(): Promise<SelftestResult> {
  const findings = await tryEscapes()
  const held = didHold(findings)
  const document = { schema: 'chio.escape.v1', held, ...documentOf(findings) }
  return { document, lines: linesOf(findings), ok: held }
}

/** Exit 1 when an attempt succeeded, or the main job did not work afterwards. */
export async function runCageSelftest(options: CommonOptions): Promise<void> {
  tell(options, await cageSelftest())
}

function documentOf({ attempts, cage, outside, streams }: EscapeFindings) {
  return {
    cage,
    attempts: attempts.map(({ answers, attempt: { aim, name, wall } }) => ({ name, aim, wall, answers })),
    streams,
    outside,
  }
}

function linesOf(findings: EscapeFindings): string[] {
  const { attempts, cage, outside, streams } = findings
  const kinds = CAGE_KINDS.map(({ exec, profile }) => `${profile}/${exec}`).join(', ')
  return [
    `the tool runs as uid ${cage.uid}, launched by uid ${cage.launcherUid}; cages (profile/exec): ${kinds}`,
    '',
    row('      ', 'attempt', 'wall', 'answer', 'aim'),
    ...attempts.map(lineOfAttempt),
    '',
    ...[...streams, ...outside].map(lineOfGame),
    '',
    summaryOf(findings),
  ]
}

function row(mark: string, name: string, wall: string, ...rest: string[]): string {
  const [answer = '', aim = ''] = rest
  return `${mark}${name.padEnd(NAME_COLUMNS)}${wall.padEnd(WALL_COLUMNS)}${answer.padEnd(ANSWER_COLUMNS)} ${aim}`
}

function lineOfAttempt({ answers, attempt }: AttemptResult): string {
  const isOpen = answers.some(({ verdict }) => verdict === 'open')
  const isConfined = answers.some(({ verdict }) => verdict === 'confined')
  const why = isConfined && attempt.granted !== undefined ? ` (${attempt.granted.because})` : ''
  return row(isOpen ? 'OPEN  ' : 'ok    ', attempt.name, attempt.wall, answersOf(answers), attempt.aim + why)
}

/** One word where all cages answered alike, else one a cage. */
function answersOf(answers: AttemptResult['answers']): string {
  const words = answers.map(({ answer, count }) => (count === null ? answer : `${answer} after ${count}`))
  const different = [...new Set(words)]
  return different.length === 1 ? (different[0] ?? '') : words.join(', ')
}

const lineOfGame = ({ aim, found, name, ok }: GameResult): string =>
  `${ok ? 'ok    ' : 'OPEN  '}${name.padEnd(NAME_COLUMNS)}${aim}: ${found}`

function summaryOf(findings: EscapeFindings): string {
  const answers = findings.attempts.flatMap(attempt => attempt.answers)
  const count = (verdict: string): number => answers.filter(answer => answer.verdict === verdict).length
  const games = [...findings.streams, ...findings.outside]
  const open = count('open') + games.filter(({ ok }) => !ok).length
  const tried = `${findings.attempts.length} attempts in ${CAGE_KINDS.length} cages: ${count('refused')} refused, ${count('confined')} granted and leading nowhere`
  return open === 0
    ? `${tried}; ${games.length} stories on the stream and from outside held; nothing got out.`
    : `${tried}; ${open} got out.`
}
