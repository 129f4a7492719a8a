// Who may speak to a kernel whose sockets a group can reach: the uids of its configuration, and for the authority
// the broker's alone. The peers are processes of other uids.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { parseKernelConfig } from '../../kernel/config.js'
import type { KernelEvent } from '../../kernel/kernel-context.js'
import { provisionKernel, type RunningKernel, startKernel } from '../../kernel/start-kernel.js'
import { systemClock } from '../../native/clock.js'
import { decode, encode } from '../../protocol/codec.js'
import { KERNEL_RPC_SCHEMA, KernelRequest, KernelResponse } from '../../protocol/kernel-rpc.js'
import { signingKey } from '../../protocol/keys.js'
import {
  kernelConfig,
  makeKernelFolder,
  makeKernelKeys,
  seed,
  TENANT,
  UNREACHABLE,
} from '../support/kernel.js'
import { SKIP_REASONS } from '../support/skips.js'
import { prefixed } from '../support/test-listener.js'
import { describeWhen } from '../support/when.js'

/** A daemon's socket belongs to its own primary group; its clients are members. */
const GROUP = process.getegid?.() ?? 0
const CLIENT = 61_901
const BROKER = 61_902
const STRANGER = 61_903

/** Sends a frame as another uid and prints the answer as hex: nothing when the connection was closed. */
const PROGRAM = `
import socket, struct, sys
s = socket.socket(socket.AF_UNIX)
s.settimeout(5)
s.connect(sys.argv[1])
data = b''
try:
    s.sendall(bytes.fromhex(sys.argv[2]))
    s.shutdown(socket.SHUT_WR)
    while chunk := s.recv(65536): data += chunk
except (BrokenPipeError, ConnectionResetError): pass
print(data.hex())
`

let folder: string
let kernel: RunningKernel
const events: KernelEvent[] = []

async function askAs(uid: number, gid: number, path: string): Promise<Buffer> {
  const ids = [`--reuid=${uid}`, `--regid=${gid}`, `--groups=${GROUP}`]
  const args = [...ids, '--', '/usr/bin/python3', '-c', PROGRAM, path, statusFrame().toString('hex')]
  const child = spawn('setpriv', args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let printed = ''
  child.stdout.on('data', (chunk: Buffer) => {
    printed += chunk.toString()
  })
  await once(child, 'close')
  expect(child.exitCode).toBe(0)
  return Buffer.from(printed.trim(), 'hex')
}

const statusFrame = (): Buffer =>
  prefixed(
    encode(KernelRequest, {
      authorization: null,
      operation: { kind: 'status', request: {} },
      requestId: 'a'.repeat(64),
      schema: KERNEL_RPC_SCHEMA,
      tenantScope: TENANT,
    }),
  )

describeWhen(
  process.geteuid?.() === 0,
  SKIP_REASONS.needsRoot,
  'a kernel whose group can reach its sockets',
  () => {
    const people = {
      administrator: signingKey(seed()),
      broker: signingKey(seed()),
      caller: signingKey(seed()),
    }
    let hostSocketPath: string
    let authoritySocketPath: string
    beforeEach(async () => {
      events.length = 0
      folder = makeKernelFolder()
      chmodSync(folder, 0o711)
      const base = JSON.parse(JSON.stringify(kernelConfig(folder, people))) as Record<string, object>
      const document = {
        ...base,
        socketGid: GROUP,
        broker: { ...base['broker'], gid: BROKER, uid: BROKER },
        clients: [{ callerPublicKey: people.caller.publicKey, gids: [CLIENT], uid: CLIENT }],
      }
      const config = parseKernelConfig(Buffer.from(JSON.stringify(document)))
      hostSocketPath = config.hostSocketPath
      authoritySocketPath = config.authoritySocketPath
      for (const directory of [dirname(hostSocketPath), dirname(authoritySocketPath)]) {
        chownSync(directory, 0, GROUP)
        chmodSync(directory, 0o710)
      }
      await provisionKernel(config, systemClock)
      const log = (event: KernelEvent) => events.push(event)
      kernel = await startKernel({
        clock: systemClock,
        config,
        keys: makeKernelKeys(),
        log,
        records: UNREACHABLE,
      })
    })
    afterEach(async () => {
      await kernel.close()
      rmSync(folder, { recursive: true, force: true })
    })
    const refused = (uid: number) =>
      expect.objectContaining({ event: 'connection_refused', reason: 'not_admitted', uid }) as unknown

    test('answers the configured uid', async () => {
      const answer = await askAs(CLIENT, CLIENT, hostSocketPath)
      expect(decode(KernelResponse, answer.subarray(4), 'answer').result?.kind).toBe('status')
    })

    test.each([
      ['a stranger of the group', STRANGER, STRANGER],
      ['the right uid under another gid', CLIENT, STRANGER],
      ['the broker', BROKER, BROKER],
      ['the overflow uid', 65_534, 65_534],
    ])('closes without a byte on %s', async (_who, uid, gid) => {
      expect(await askAs(uid, gid, hostSocketPath)).toHaveLength(0)
      const reason = uid === 65_534 ? 'overflow_uid' : 'not_admitted'
      expect(events).toContainEqual(expect.objectContaining({ event: 'connection_refused', reason, uid }))
    })

    test('lets nobody but the broker to the authority', async () => {
      expect(await askAs(CLIENT, CLIENT, authoritySocketPath)).toHaveLength(0)
      expect(events).toContainEqual(refused(CLIENT))
      events.length = 0
      expect(await askAs(BROKER, BROKER, authoritySocketPath)).toHaveLength(0)
      expect(events).toContainEqual(expect.objectContaining({ event: 'authority_connection_closed' }))
    })
  },
)
