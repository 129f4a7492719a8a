// The kernel as systemd runs it: both sockets handed over, ready and status in real datagrams, and its end when another
// owner took its store.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { KernelConfig } from '../../kernel/config.js'
import { provisionKernel } from '../../kernel/start-kernel.js'
import { systemClock } from '../../native/clock.js'
import { packageRoot } from '../../native/paths.js'
import { encode } from '../../protocol/codec.js'
import { Grant } from '../../protocol/grant.js'
import { signingKey } from '../../protocol/keys.js'
import { approve, clientOf, grantFor, kernelConfig, makeKernelFolder, seed } from '../support/kernel.js'
import { NotifyReceiver } from '../support/notify-receiver.js'

const people = { administrator: signingKey(seed()), broker: signingKey(seed()), caller: signingKey(seed()) }
let folder: string
let config: KernelConfig
let manager: NotifyReceiver
let daemon: ChildProcess | undefined
const lines: Record<string, unknown>[] = []

beforeEach(async () => {
  folder = makeKernelFolder()
  config = kernelConfig(folder, people)
  manager = new NotifyReceiver()
  await provisionKernel(config, systemClock)
  lines.splice(0)
})
afterEach(async () => {
  if (daemon !== undefined && daemon.exitCode === null && daemon.signalCode === null) {
    daemon.kill('SIGKILL')
    await once(daemon, 'exit')
  }
  manager.close()
  rmSync(folder, { recursive: true, force: true })
})

/** Listens as systemd would, and starts the kernel when somebody connects. */
async function activated(): Promise<ChildProcess> {
  const paths = [config.hostSocketPath, config.authoritySocketPath]
  const file = join(folder, 'config.json')
  writeFileSync(file, JSON.stringify(config), { mode: 0o600 })
  const keys = ['kernel', 'authority', 'issuer', 'storage'].flatMap(name => {
    writeFileSync(join(folder, `${name}.key`), seed(), { mode: 0o600 })
    return [`--${name}-key-file`, join(folder, `${name}.key`)]
  })
  const bin = join(packageRoot(), 'dist', 'bin', 'chio-kerneld.js')
  const listening = paths.flatMap(path => ['-l', path])
  const child = spawn(
    'systemd-socket-activate',
    [
      ...listening,
      '-E',
      'NOTIFY_SOCKET',
      '-E',
      'WATCHDOG_USEC',
      process.execPath,
      bin,
      '--config',
      file,
      ...keys,
    ],
    {
      env: { PATH: process.env['PATH'], NOTIFY_SOCKET: manager.path, WATCHDOG_USEC: '600000' },
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  )
  createInterface({ input: child.stderr }).on('line', line => {
    if (line.startsWith('{')) lines.push(JSON.parse(line) as Record<string, unknown>)
  })
  for (const path of paths) {
    while (!existsSync(path)) await delay(10)
    chmodSync(path, 0o600)
  }
  return (daemon = child)
}

function runSql(statement: string): void {
  const script = `import sqlite3, sys
store = sqlite3.connect(sys.argv[1], timeout=20)
store.execute(sys.argv[2])
store.commit()`
  const store = join(config.stateDirectory, 'kernel.db')
  expect(spawnSync('/usr/bin/python3', ['-c', script, store, statement], { encoding: 'utf8' }).stderr).toBe(
    '',
  )
}

test('a kernel takes both sockets, says ready, and ends itself with 73 when its store has another owner', {
  timeout: 90_000,
}, async () => {
  const child = await activated()
  const client = clientOf(config)
  // The connection that starts it: it is answered when the kernel is there, or lost to a busy machine.
  await client.call('status', {}).catch(() => undefined)
  expect(await manager.heard(/^READY=1$/)).toContain('STATUS=serving; waiting to settle: 0')
  await manager.heard(/^WATCHDOG=1$/, 2)
  expect(await client.call('status', {})).toMatchObject({ ownerEpoch: 1 })

  runSql('UPDATE kernel_state SET owner_epoch = owner_epoch + 1')
  const grant = grantFor(people)
  const approval = approve(people, 'issue_grant', encode(Grant, grant))
  await expect(client.call('issue_grant', grant, approval)).rejects.toMatchObject({
    code: 'kernel_unavailable',
  })
  client.close()
  if (child.exitCode === null) await once(child, 'exit')
  expect(child.exitCode).toBe(73)
  expect(lines.at(-1)).toMatchObject({ event: 'ended', code: 'fenced' })
})
