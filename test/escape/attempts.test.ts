/**
 * How the escape suite judges: what is a refusal, what may be granted where, and that no attempt is lost on the way.
 */
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { packageRoot } from '../../native/index.js'
import { attempt, harmless, judgeAnswer } from '../../selftest/escape/attempt.js'
import { ATTEMPTS, CAGE_KINDS } from '../../selftest/escape/escape.js'
import type { HostileRun } from '../../selftest/escape/hostile-run.js'
import { attemptsHere, readReport } from '../../selftest/escape/probe-report.js'
import { judgeGame, STREAM_GAMES } from '../../selftest/escape/stream-game.js'

const NATIVE_ONCE = { profile: 'native', exec: 'once' } as const
const NODE_ALLOWED = { profile: 'node', exec: 'allowed' } as const

describe('an answer', () => {
  const plain = attempt('filter', 'a', 'a socket', ['EPERM', 'SIGSYS'])

  test('is a refusal when its row says so, and a way out otherwise', () => {
    expect(judgeAnswer(plain, 'EPERM', NATIVE_ONCE)).toBe('refused')
    expect(judgeAnswer(plain, 'SIGSYS', NATIVE_ONCE)).toBe('refused')
    for (const answer of ['ok', 'walled', 'EACCES', 'SIGALRM'])
      expect(judgeAnswer(plain, answer, NATIVE_ONCE)).toBe('open')
  })

  test('is granted only in the cages that its row names', () => {
    const pair = harmless(plain, 'pairs', 'leads nowhere')
    expect(judgeAnswer(pair, 'ok', NATIVE_ONCE)).toBe('open')
    expect(judgeAnswer(pair, 'ok', NODE_ALLOWED)).toBe('confined')
    const program = harmless(plain, 'exec-allowed', 'walls went along', ['walled'])
    expect(judgeAnswer(program, 'walled', NATIVE_ONCE)).toBe('open')
    expect(judgeAnswer(program, 'walled', NODE_ALLOWED)).toBe('confined')
    expect(judgeAnswer(program, 'ok', NODE_ALLOWED)).toBe('open')
  })
})

describe('the report of the probe', () => {
  const rows = [attempt('filter', 'one', 'x'), attempt('filter', 'two', 'y')]

  test('is read with its errno, signal and count', () => {
    const report = readReport('one e11 61\ntwo s31\nend ok\n', rows)
    expect([...report]).toEqual([
      ['one', { answer: 'EAGAIN', count: 61 }],
      ['two', { answer: 'SIGSYS', count: null }],
    ])
  })

  test.each([
    ['stops early', 'one e1\n'],
    ['names an attempt twice', 'one e1\none e1\ntwo e1\nend ok\n'],
    ['lacks an attempt', 'one e1\nend ok\n'],
    ['has one that is unknown', 'one e1\ntwo e1\nthree e1\nend ok\n'],
    ['says something else', 'one e1\ntwo fine\nend ok\n'],
    ['is empty', ''],
  ])('fails the suite when it %s', (_what, text) => {
    expect(() => readReport(text, rows)).toThrow('report of the probe: expected')
  })
})

describe('the attempts', () => {
  /** Every attempt that the program has, on any architecture. */
  function namesInProgram(): string[] {
    const folder = join(packageRoot(), 'native', 'cage-probe')
    const sources = readdirSync(folder).filter(name => name.endsWith('.c') && name !== 'stream-games.c')
    return sources.flatMap(name =>
      [...readFileSync(join(folder, name), 'utf8').matchAll(/^ {4}\{"([a-z0-9-]+)", \w+\},$/gm)].map(
        match => match[1]!,
      ),
    )
  }

  test('of table and program are the same, each once', () => {
    const names = ATTEMPTS.map(({ name }) => name)
    expect([...new Set(names)]).toEqual(names)
    expect(namesInProgram().sort()).toEqual([...names].sort())
    expect(attemptsHere(ATTEMPTS).length).toBeGreaterThan(200)
  })

  test('are made under both profiles and both rules for exec', () => {
    expect(CAGE_KINDS.map(({ exec, profile }) => `${profile} ${exec}`)).toEqual([
      'native once',
      'native allowed',
      'node once',
      'node allowed',
    ])
  })
})

describe('a game on the stream', () => {
  const game = STREAM_GAMES.find(({ name }) => name === 'surplus-descriptors')!
  const played = (outcome: object, hits: number, said: string): HostileRun =>
    ({ run: { outcome }, hits, said }) as unknown as HostileRun
  const response = { kind: 'response' }
  const failure = (dispatchKnowledge: string) => ({
    kind: 'failure',
    failure: { receipt: { body: { dispatchKnowledge } } },
  })

  test('holds when the provider was reached as often as the record says, and as the game allows', () => {
    expect(judgeGame(game, played(response, 1, 'answer 9\nheld 0\n')).ok).toBe(true)
    expect(judgeGame(game, played(failure('not_started'), 0, 'held 0\n')).ok).toBe(true)
    expect(judgeGame(game, played(failure('unknown'), 1, 'held 0\n')).ok).toBe(true)
    expect(judgeGame(game, played(response, 2, 'held 0\n')).ok).toBe(false)
    expect(judgeGame(game, played(response, 0, 'held 0\n')).ok).toBe(false)
    expect(judgeGame(game, played(failure('not_started'), 1, 'held 0\n')).ok).toBe(false)
    expect(judgeGame(game, played(response, 1, 'held 3\n')).ok).toBe(false)
  })
})
