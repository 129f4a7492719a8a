// What a commit of the kernel costs with its signed head, as the system sees it, and a kill between the two.
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { KERNEL_STORE_SCHEMA } from '../../../kernel/sqlite/schema.js'
import { headPathOf } from '../../../kernel/sqlite/signed-head.js'
import { openTables } from '../../../kernel/sqlite/tables.js'
import { systemClock } from '../../../native/clock.js'
import { readKernelHead } from '../../../protocol/kernel-head.js'
import { signingKey } from '../../../protocol/keys.js'
import { provisionStore } from '../../../store/provision.js'
import { startChild } from '../../support/compiled-child.js'
import { temporaryFolder } from '../../support/temporary-folder.js'

let folder: string
let path: string
let head: string
beforeEach(async () => {
  folder = temporaryFolder('chio-head-')
  path = join(folder, 'kernel.db')
  head = headPathOf(path)
  await provisionStore(path, KERNEL_STORE_SCHEMA, { clock: systemClock })
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

describe('a commit of the kernel', () => {
  const SCRIPT = `
    const { openTables } = await compiled('kernel/sqlite/tables')
    const { signingKey } = await compiled('protocol/keys')
    const { systemClock } = await compiled('native/clock')
    const key = signingKey(new Uint8Array(32).fill(7))
    const log = { checkpointReceipts: 100, durableMode: 'all', issuerKey: key.publicKey, key, tenantScope: 'tenant' }
    let commits = 0
    const atCutpoint = name => {
      if (name === args[1] && commits === Number(args[2])) process.kill(process.pid, 'SIGKILL')
    }
    const tables = await openTables(args[0], { atCutpoint, clock: systemClock, log })
    say('begin')
    for (commits = 1; commits <= 5; commits += 1) {
      await tables.transaction('test', () => undefined)
      say('done')
    }
    say('end')`

  test('is one sync, of the log; the head is written after it and before anybody is told, without one', async () => {
    const trace = join(folder, 'trace')
    const calls = 'trace=fsync,fdatasync,write,pwrite64'
    const wrapper = ['strace', '-f', '-y', '-o', trace, '-e', calls]
    await startChild(SCRIPT, [path, ''], { wrapper }).ended()
    const lines = readFileSync(trace, 'utf8').split('\n')
    const between = lines.slice(
      lines.findIndex(line => line.includes('\\"begin\\"')) + 1,
      lines.findIndex(line => line.includes('\\"end\\"')),
    )
    const steps = between.flatMap(line => {
      if (/f(data)?sync\(\d+<[^>]*kernel\.db-wal>/.test(line)) return ['sync']
      if (/pwrite64\(\d+<[^>]*kernel\.head>/.test(line)) return ['head']
      return /f(data)?sync\(/.test(line) ? ['another sync'] : /done/.test(line) ? ['told'] : []
    })
    expect(steps).toEqual(Array.from({ length: 5 }, () => ['sync', 'head', 'told']).flat())
  })

  test('killed between the commit and its head, is rolled forward by one', async () => {
    const child = startChild(SCRIPT, [path, 'head_written:before_commit', '3'])
    expect(await child.ended()).toMatchObject({ lines: ['begin', 'done', 'done'], signal: 'SIGKILL' })
    const by = signingKey(new Uint8Array(32).fill(7))
    const indexNamed = () => readKernelHead(readFileSync(head), by.publicKey, head).commitIndex
    expect(indexNamed()).toBe(2)
    const log = {
      checkpointReceipts: 100,
      durableMode: 'all',
      issuerKey: by.publicKey,
      key: by,
      tenantScope: 'tenant',
    }
    ;(await openTables(path, { clock: systemClock, log })).close()
    expect(indexNamed()).toBe(3)
  })
})
