// The signed head beside the kernel's store, on real files: what it names, what it rolls forward, what it refuses.
import {
  closeSync,
  copyFileSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { logRefusal } from '../../../kernel/log/receipt-log.js'
import { KERNEL_STORE_SCHEMA } from '../../../kernel/sqlite/schema.js'
import { headPathOf } from '../../../kernel/sqlite/signed-head.js'
import { openTables, type SqliteAdmissionTables } from '../../../kernel/sqlite/tables.js'
import { provisionKernel } from '../../../kernel/start-kernel.js'
import { systemClock } from '../../../native/clock.js'
import { isBrokerError } from '../../../protocol/errors.js'
import {
  KERNEL_HEAD_BYTES,
  KERNEL_HEAD_SCHEMA,
  readKernelHead,
  signKernelHead,
} from '../../../protocol/kernel-head.js'
import { type SigningKey, signingKey } from '../../../protocol/keys.js'
import { MAXIMUM_INTEGER } from '../../../protocol/limits.js'
import { provisionStore } from '../../../store/provision.js'
import { seed } from '../../support/kernel.js'
import { temporaryFolder } from '../../support/temporary-folder.js'

const key = signingKey(seed())
let folder: string
let path: string
let head: string
let tables: SqliteAdmissionTables | undefined

beforeEach(async () => {
  folder = temporaryFolder('chio-head-')
  path = join(folder, 'kernel.db')
  head = headPathOf(path)
  await provisionStore(path, KERNEL_STORE_SCHEMA, { clock: systemClock })
})
afterEach(() => {
  close()
  rmSync(folder, { recursive: true, force: true })
})

async function open({
  bootId = 'boot-1',
  by = key,
}: {
  bootId?: string
  by?: SigningKey
} = {}): Promise<void> {
  close()
  const log = {
    checkpointReceipts: 100,
    durableMode: 'all',
    issuerKey: key.publicKey,
    key: by,
    tenantScope: 'tenant',
  }
  tables = await openTables(path, { bootId, clock: systemClock, log })
}

function close(): void {
  tables?.close()
  tables = undefined
}

/** One commit with one receipt. */
function commit(sentence = 'refused'): Promise<unknown> {
  const refusal = {
    callerPublicKey: null,
    capabilityId: 'grant',
    code: 'grant_unknown',
    operation: null,
    parameters: {},
    sentence,
  }
  return (tables as SqliteAdmissionTables).transaction('test', move => logRefusal(move, refusal))
}

const named = () => readKernelHead(readFileSync(head), key.publicKey, head)

/** The newest owner's note is lost, so that the signed head alone has to notice. */
function forgetNote(): void {
  rmSync(join(folder, 'owner.lock'), { force: true })
}

async function refusal(
  options: Parameters<typeof open>[0] = {},
): Promise<{ code: string; sentence: string }> {
  try {
    await open(options)
  } catch (error) {
    if (isBrokerError(error)) return { code: error.code, sentence: error.message }
    throw error
  }
  throw new Error('opened')
}

async function expectRefused(sentence: RegExp, options: Parameters<typeof open>[0] = {}): Promise<void> {
  const refused = await refusal(options)
  expect(refused.code).toBe('store_head_refused')
  expect(refused.sentence).toMatch(sentence)
}

describe('the signed head', () => {
  test('names after every commit the commit and the end of the log, in one sector', async () => {
    await open()
    for (const commits of [1, 2, 3]) {
      await commit()
      const receipts = (tables as SqliteAdmissionTables).receipts
      expect(named()).toMatchObject({
        bootId: 'boot-1',
        commitIndex: commits,
        entries: commits,
        lastLeaf: Buffer.from(receipts.leaves(commits, commits)[0] as Uint8Array).toString('hex'),
        storeId: tables?.storeId,
      })
      expect(readFileSync(head)).toHaveLength(KERNEL_HEAD_BYTES)
    }
  })

  test('fits into its sector with the largest numbers', () => {
    const body = {
      bootId: 'b'.repeat(64),
      commitIndex: MAXIMUM_INTEGER,
      entries: MAXIMUM_INTEGER,
      lastLeaf: 'f'.repeat(64),
      schema: KERNEL_HEAD_SCHEMA,
      storeId: 'e'.repeat(64),
    } as const
    expect(readKernelHead(signKernelHead(body, key), key.publicKey, 'head')).toEqual(body)
  })

  test('is there before the first commit, also where a first owner ended before it', async () => {
    await open()
    expect(named()).toMatchObject({ commitIndex: 0, entries: 0, lastLeaf: null })
    rmSync(head)
    await open()
    await commit()
    expect(named().commitIndex).toBe(1)
  })

  test('one commit behind is rolled forward', async () => {
    await open()
    await commit()
    const before = readFileSync(head)
    await commit()
    close()
    writeFileSync(head, before)
    await open()
    expect(named()).toMatchObject({ commitIndex: 2, entries: 2 })
  })

  test('two commits behind is refused in the same boot, and rolled forward after another', async () => {
    await open()
    await commit()
    const before = readFileSync(head)
    await commit()
    await commit()
    close()
    writeFileSync(head, before)
    const { code, sentence } = await refusal()
    expect(code).toBe('store_head_refused')
    expect(sentence).toMatch(/expected the head of commit 3 or of the one before, got that of 1/)
    await open({ bootId: 'boot-2' })
    expect(named()).toMatchObject({ bootId: 'boot-2', commitIndex: 3 })
  })
})

describe('a head that its disk does not take', () => {
  /** The number at which this process has the head open. */
  function headDescriptor(): number {
    const found = readdirSync('/proc/self/fd').find(fd => {
      try {
        return readlinkSync(join('/proc/self/fd', fd)) === head
      } catch {
        return false
      }
    })
    return Number(found)
  }

  test('keeps its commit and stops the next one, and the next owner rolls it forward', async () => {
    await open()
    await commit()
    const descriptor = headDescriptor()
    closeSync(descriptor)
    expect(openSync('/dev/full', 'r+'), 'the lowest free number').toBe(descriptor)
    await commit('the last one that was told')
    expect(named()).toMatchObject({ commitIndex: 1, entries: 1 })
    await expect(commit('never told')).rejects.toMatchObject({
      code: 'storage',
      message: expect.stringMatching(/store head .*kernel\.head.*ENOSPC/) as string,
      outcome: 'not_started',
    })
    expect(tables?.receipts.entries()).toBe(2)
    await open()
    expect(named()).toMatchObject({ commitIndex: 2, entries: 2 })
    await commit('told again')
    expect(named()).toMatchObject({ commitIndex: 3, entries: 3 })
  })
})

describe('what lies below or beside a head that is not its own is refused', () => {
  test('an older copy of the store', async () => {
    await open()
    await commit()
    close()
    copyFileSync(path, join(folder, 'yesterday'))
    await open()
    await commit()
    close()
    writeFileSync(path, readFileSync(join(folder, 'yesterday')))
    forgetNote()
    const { code, sentence } = await refusal()
    expect(code).toBe('store_replaced')
    expect(sentence).toMatch(/expected commit 2 or later, .* got 1; an older copy was put back: restore/)
  })

  test('a missing head', async () => {
    await open()
    await commit()
    close()
    rmSync(head)
    await expectRefused(/expected the head of a store of 1 commits, got none; put the newest/)
  })

  test.each([
    [
      'one digit of it changed',
      (bytes: Buffer) => Buffer.from(bytes.toString().replace('"commitIndex":2', '"commitIndex":1')),
    ],
    ['cut', (bytes: Buffer) => bytes.subarray(0, 300)],
    ['longer', (bytes: Buffer) => Buffer.concat([bytes, Buffer.from(' ')])],
    ['empty', () => Buffer.alloc(0)],
  ])('an edited head: %s', async (_how, edit) => {
    await open()
    await commit()
    await commit()
    close()
    writeFileSync(head, edit(readFileSync(head)))
    expect((await refusal()).code).toBe('store_head_refused')
  })

  test('a head of another key', async () => {
    await open()
    await commit()
    const other = signingKey(seed())
    await expectRefused(/expected this kernel key's signature/, { by: other })
  })

  test('a head of another store', async () => {
    await open()
    await commit()
    close()
    const body = { ...named(), storeId: 'a'.repeat(64) }
    writeFileSync(head, signKernelHead(body, key))
    expect((await refusal()).sentence).toContain(`got one of ${body.storeId}`)
  })

  test.each([0, 1])('a store of another history, %i commits ahead', async ahead => {
    await open()
    await commit()
    close()
    copyFileSync(path, join(folder, 'fork'))
    const before = readFileSync(head)
    await open()
    await commit('one history')
    const signed = readFileSync(head)
    close()
    writeFileSync(path, readFileSync(join(folder, 'fork')))
    writeFileSync(head, before)
    forgetNote()
    await open()
    for (let more = 0; more <= ahead; more += 1) await commit('another history')
    close()
    writeFileSync(head, signed)
    await expectRefused(/a store whose log has the signed entry 2, got another log/)
  })

  test('a head that outlived its store, where a new one is provisioned', async () => {
    await open()
    close()
    rmSync(path)
    await expect(provisionKernel({ stateDirectory: folder }, systemClock)).rejects.toThrow(
      /got that of a former store/,
    )
  })
})
