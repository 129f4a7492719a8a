import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ERROR_CODES } from '../../protocol/error-codes.js'
import { startChild } from '../support/compiled-child.js'
import { fullCount } from '../support/counts.js'
import { CHILD_OPENS, makeTestStore, type TestStore } from '../support/test-store.js'
import { standStill } from '../support/stop.js'

let made: TestStore

beforeEach(async () => {
  made = await makeTestStore()
})
afterEach(() => made.remove())

const HOLD = `${CHILD_OPENS}
try {
  const store = await open()
  say({ opened: true })
  process.stdin.on('end', () => store.close()).resume()
} catch (error) {
  say({ code: error.code })
}`

describe('the owner lock', () => {
  test('refuses a second process with exit code 73, naming the pid of the first', async () => {
    const holder = startChild(HOLD, [made.path])
    expect(await holder.next()).toEqual({ opened: true })
    await expect(made.open()).rejects.toThrow(`held by pid ${holder.process.pid}`)
    await expect(made.open()).rejects.toMatchObject({ code: 'another_instance', outcome: 'not_started' })
    expect(ERROR_CODES.another_instance.exitCode).toBe(73)
    await holder.kill()
  })

  test('refuses a second opening in the same process', async () => {
    const store = await made.open()
    await expect(made.open()).rejects.toMatchObject({ code: 'another_instance' })
    store.close()
    const again = await made.open()
    again.close()
  })

  test('is free at once when its holder is killed', async () => {
    const holder = startChild(HOLD, [made.path])
    await holder.next()
    await holder.kill('SIGKILL')
    const store = await made.open()
    expect(readFileSync(join(made.folder, 'owner.lock'), 'latin1').split(/\s/)[0]).toBe(String(process.pid))
    store.close()
  })

  test('is kept by a holder that is stopped', async () => {
    const holder = startChild(HOLD, [made.path])
    await holder.next()
    await standStill(holder.process.pid ?? 0)
    await expect(made.open()).rejects.toMatchObject({ code: 'another_instance' })
    await holder.kill('SIGKILL')
  })

  test('is waited for as long as the caller says', async () => {
    const holder = startChild(HOLD, [made.path])
    await holder.next()
    const opening = made.open({ ownerWaitMs: 5_000 })
    holder.process.stdin?.end()
    const store = await opening
    await holder.ended()
    store.close()
  })

  test('is taken by exactly one of many who start at once', async () => {
    const children = Array.from({ length: fullCount(5, 20) }, () => startChild(HOLD, [made.path]))
    const said = await Promise.all(children.map(child => child.next()))
    expect(said.filter(line => line['opened'] === true)).toHaveLength(1)
    expect(said.filter(line => line['code'] === 'another_instance')).toHaveLength(children.length - 1)
    await Promise.all(children.map(child => child.kill()))
  })
})
