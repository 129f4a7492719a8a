// chio broker capacity: the formula at known points, its inverse, and the command as an operator runs it.
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { rateFor, showCapacity, slotLoad } from '../../cli/broker-capacity.js'
import { packageRoot } from '../../native/paths.js'
import { catchOutput } from '../support/caught-output.js'

const run = promisify(execFile)
const CHIO = join(packageRoot(), 'dist', 'bin', 'chio.js')
const capacity = (...args: string[]) => run(process.execPath, [CHIO, 'broker', 'capacity', ...args])

describe('the loss of one slot', () => {
  test('one arrival a hold is declined every other time', () => {
    expect(slotLoad(10, 100)).toMatchObject({
      load: 1,
      declinedShare: 0.5,
      servedPerSecond: 5,
      busyShare: 0.5,
    })
  })

  test('what is served never exceeds what the slot can hold', () => {
    expect(slotLoad(1e6, 100).servedPerSecond).toBeCloseTo(10, 3)
  })

  test('the rate of a tolerated share has that share', () => {
    for (const share of [0.001, 0.05, 0.5, 0.9])
      expect(slotLoad(rateFor(share, 37), 37).declinedShare).toBeCloseTo(share, 12)
  })
})

describe('the command', () => {
  test('prints the asked rate among its neighbours', async () => {
    const { stdout } = await capacity('--rate', '5', '--hold', '40')
    expect(stdout).toMatch(/^ +> 5 +0\.2 +16\.7 % +4\.17 +16\.7 %$/m)
    expect(stdout).toContain('at most 1 % declined: up to 0.253 /s')
  })

  test('gives one JSON document', () => {
    const said = catchOutput()
    onTestFinished(() => said.restore())
    showCapacity({ rate: '10', hold: '100', json: true })
    expect(JSON.parse(said.text())).toMatchObject({
      schema: 'chio.broker-capacity.v1',
      holdMs: 100,
      asked: { declinedShare: 0.5 },
      tolerated: [{ declinedShare: 0.001 }, {}, {}, {}],
    })
  })

  test.each([
    [{ rate: '0', hold: '1' }, '--rate'],
    [{ rate: '-1', hold: '1' }, '--rate'],
    [{ rate: '1', hold: 'x' }, '--hold'],
    [{ rate: '1', hold: '1e400' }, '--hold'],
  ])('refuses %j and names the option', (options, option) => {
    expect(() => showCapacity(options)).toThrow(`${option} refused`)
  })
})
