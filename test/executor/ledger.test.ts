// The ledger of an executor: made once, opened for its own executor alone, and refused in words where it is not the one
// that was written. Nothing is ever provisioned in its place.
import {
  chmodSync,
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ExecutorLedger } from '../../executor/ledger.js'
import { headPathOf } from '../../executor/ledger-head.js'
import {
  authorizationOf,
  codeOf,
  EXECUTOR,
  EXECUTOR_KEY,
  ExecutorWorld,
  hexOf,
  KERNEL_KEY,
  MACHINE_TIME,
} from '../support/executor-world.js'
import { saidTo } from '../support/test-store.js'

let world: ExecutorWorld
beforeEach(async () => {
  world = await ExecutorWorld.begin(2)
})
afterEach(() => world.end())

const sentenceOf = (act: Promise<unknown>): Promise<string> =>
  act.then(
    () => 'nothing was refused',
    (error: unknown) => (error as Error).message,
  )
/** Refused in one sentence, and nothing is made of it: the folder holds what it held. */
async function refusedWith(expected: RegExp, act: Promise<unknown>): Promise<void> {
  const before = readdirSync(world.folder)
  expect(await sentenceOf(act)).toMatch(expected)
  expect(readdirSync(world.folder)).toEqual(before)
}

describe('a ledger', () => {
  test('is provisioned once, and never over what is left of another', async () => {
    await refusedWith(/provisioning .* refused: expected nothing there, got a file/, world.provision())
    rmSync(world.path)
    await refusedWith(/provisioning refused: expected nothing of a ledger, got .*head/, world.provision())
    expect(existsSync(world.path)).toBe(false)
    await refusedWith(/store refused: expected .* to exist, got nothing/, world.open())
  })

  test.each([0, 65, 1.5])('of %d operations is refused before anything is made', async capacity => {
    world.end()
    await expect(world.provision(capacity)).rejects.toThrow(RangeError)
  })

  test('opens for its executor, epoch and key alone', async () => {
    const others = [
      { ...EXECUTOR, key_epoch: 2 },
      { ...EXECUTOR, executor_id: 'another' },
      { ...EXECUTOR, public_key: KERNEL_KEY.publicKey },
    ]
    for (const other of others) {
      const opened = ExecutorLedger.open(world.path, other, MACHINE_TIME)
      await refusedWith(/executor refused: expected executor executor-own of key epoch 1/, opened)
    }
    expect(await (await world.open()).counts()).toEqual({ capacity: 2, claims: 0, reports: 0, segments: 1 })
  })

  test('keeps every row as it was written', async () => {
    await world.execute(authorizationOf('one'))
    await (await world.open()).extend(1, EXECUTOR_KEY)
    const tables = ['configuration', 'claims', 'reports', 'segments', 'history']
    const clock = 'caller_executor_clock'
    const said = saidTo(world.path, [
      ...tables.map(table => `DELETE FROM caller_executor_${table}`),
      `UPDATE ${clock} SET high_water_unix_ms = high_water_unix_ms - 1`,
      `DELETE FROM ${clock}`,
    ])
    expect(said).toEqual([
      ...tables.map(table => `caller_executor_${table} is append-only`),
      `${clock} never goes back`,
      `${clock} is kept`,
    ])
  })

  test('is refused in a directory that others may read, or with a mode of its own', async () => {
    chmodSync(world.folder, 0o750)
    await refusedWith(/store custody of .* refused: expected mode 0700, got 0750/, world.open())
    chmodSync(world.folder, 0o700)
    chmodSync(world.path, 0o640)
    await refusedWith(/expected mode 0600, got 0640/, world.open())
  })

  test('is refused as another file, and without its head', async () => {
    const kept = `${world.path}.kept`
    copyFileSync(world.path, kept)
    renameSync(world.path, `${world.path}.away`)
    renameSync(kept, world.path)
    await refusedWith(/expected inode \d+, got \d+; put the original file back/, world.open())
    renameSync(`${world.path}.away`, world.path)
    renameSync(headPathOf(world.path), kept)
    await refusedWith(/expected .*head to exist, got nothing/, world.open())
  })
})

describe('a history that is not the one that was signed', () => {
  const content = () => [world.path, headPathOf(world.path)].map(path => readFileSync(path))
  const write = (path: string, bytes: Uint8Array | undefined) => writeFileSync(path, bytes ?? '')

  test('is refused as an older copy, whatever its owner lock says', async () => {
    const [empty] = content()
    await world.execute(authorizationOf('one'))
    write(world.path, empty)
    // Without its text the lock knows of no state, and the signed head alone is left.
    write(`${world.folder}/owner.lock`, undefined)
    await refusedWith(/expected a history of 2 lines or one more, got 0/, world.open())
    expect(await codeOf(world.execute(authorizationOf('one')))).toBe('store_replaced')
    expect(world.effects()).toHaveLength(1)
  })

  test('is refused under an older head, and under the head of another ledger', async () => {
    const [, head] = content()
    await world.execute(authorizationOf('one'))
    write(headPathOf(world.path), head)
    await refusedWith(/expected a head of line 2 or one before it, got one of line 0/, world.open())
    const other = await ExecutorWorld.begin()
    write(headPathOf(world.path), readFileSync(headPathOf(other.path)))
    other.end()
    await refusedWith(/expected a head that its executor signed, got another ledger's/, world.open())
    write(headPathOf(world.path), Buffer.alloc(1_024, ' '))
    await refusedWith(/expected a head that its executor signed, got none/, world.open())
  })

  test('is followed by its head where it is one line newer', async () => {
    const authorization = authorizationOf('one')
    let claimed: Uint8Array | undefined
    const first = await world.execute(authorization, {}, claim => {
      claimed = readFileSync(headPathOf(world.path))
      return world.append(claim)
    })
    const whole = readFileSync(headPathOf(world.path))
    write(headPathOf(world.path), claimed)
    expect(hexOf(await world.execute(authorization))).toBe(hexOf(first))
    expect(readFileSync(headPathOf(world.path))).toEqual(whole)
  })
})

describe('an extension', () => {
  test('makes room by a signed segment, and everything before it stays within reach', async () => {
    const authorizations = ['a', 'b', 'c'].map(name => authorizationOf(name))
    const [a, b, c] = authorizations as [never, never, never]
    const first = [await world.execute(a), await world.execute(b)]
    expect(await codeOf(world.execute(c))).toBe('executor_capacity')
    const ledger = await world.open()
    expect(await ledger.extend(1, EXECUTOR_KEY)).toEqual({ capacity: 3, claims: 2, reports: 2, segments: 2 })
    await world.execute(c)
    expect(await codeOf(world.execute(authorizationOf('d')))).toBe('executor_capacity')
    expect([await world.execute(a), await world.execute(b)].map(hexOf)).toEqual(first.map(hexOf))
    expect(await ledger.extend(64, EXECUTOR_KEY)).toMatchObject({ capacity: 67, segments: 3 })
    expect(world.effects()).toHaveLength(3)
  })

  test('is signed by the executor, and within its bounds', async () => {
    const ledger = await world.open()
    expect(await codeOf(ledger.extend(1, KERNEL_KEY))).toBe('executor_mismatch')
    await expect(ledger.extend(65, EXECUTOR_KEY)).rejects.toThrow(RangeError)
    await expect(ledger.extend(0, EXECUTOR_KEY)).rejects.toThrow(RangeError)
  })
})
