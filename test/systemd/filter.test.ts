// What the daemons really ask of the system, against what their units leave them.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { BrokerProcess } from '../support/broker-process.js'
import { BrokerWorld } from '../support/broker-world.js'
import { NotifyReceiver } from '../support/notify-receiver.js'
import { soonBootNs } from '../support/raw-broker.js'
import { allowedSystemCalls, countedSystemCalls } from '../support/syscall-filter.js'
import { unitText } from '../support/unit-file.js'

/** V8 asks for a protection key, SQLite as root for a file's owner: both go on without, as they have to here. */
const REFUSED = ['pkey_alloc', 'fchown']

test('a broker executes with the system calls that its unit leaves it', { timeout: 90_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'chio-filter-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const world = new BrokerWorld({})
  await world.found()
  const manager = new NotifyReceiver()
  const counts = join(folder, 'counts')
  const broker = new BrokerProcess(world, {
    wrapper: ['strace', '-f', '-qq', '-c', '-e', `inject=${REFUSED.join()}:error=EPERM`, '-o', counts, '--'],
    environment: { NOTIFY_SOCKET: manager.path, WATCHDOG_USEC: '600000' },
  })
  onTestFinished(async () => {
    await broker.stop('SIGKILL')
    manager.close()
    await world.close()
  })
  await broker.ready()
  await world.provision()
  const attempt = await world.prepared()
  expect((await attempt.preparation.stream.submit(soonBootNs())).response.accepted).toBe(true)
  await manager.heard(/^WATCHDOG=1$/)
  process.kill(
    Number.parseInt(readFileSync(join(world.stateDirectory, 'owner.lock'), 'latin1'), 10),
    'SIGTERM',
  )
  expect(await broker.ended()).toBe(0)

  const allowed = allowedSystemCalls(unitText('chio-brokerd.service'))
  const made = countedSystemCalls(counts)
  expect(made).toEqual(expect.arrayContaining(['fsync', 'link', 'pidfd_send_signal', 'sendmsg']))
  expect(made.filter(call => !allowed.has(call) && !REFUSED.includes(call))).toEqual([])
  for (const call of ['mount', 'ptrace', 'bpf', 'reboot', 'setuid', 'kexec_load'])
    expect(allowed).not.toContain(call)
})
