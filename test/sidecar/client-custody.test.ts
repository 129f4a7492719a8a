// The client of the sidecar hands its token to nobody but the pinned owner of the socket: who else listens there gets no byte.
import { chmodSync, chownSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { systemClock as clock } from '../../native/clock.js'
import { SidecarClient } from '../../sidecar/client.js'
import { isRoot } from '../support/cage.js'
import { CONTROL_TOKEN, OWN, socketPath } from '../support/sidecar.js'
import { SKIP_REASONS } from '../support/skips.js'
import { testWhen } from '../support/when.js'

const ends: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
})

const start = {
  arguments: { note: 'x' },
  controlToken: CONTROL_TOKEN,
  executionNonce: OWN.startBody.execution_nonce,
}
const ANOTHER_UID = 61_184

async function listener(path: string): Promise<{ readonly heard: () => number }> {
  let bytes = 0
  const server = createServer(socket => {
    socket.on('error', () => {})
    socket.on('data', chunk => (bytes += chunk.length))
  })
  await new Promise<void>(resolve => server.listen(path, resolve))
  chmodSync(path, 0o600)
  ends.push(() => new Promise<void>(resolve => server.close(() => resolve())))
  return { heard: () => bytes }
}

test.each([
  ['its mode lets others in', {}, (path: string) => chmodSync(path, 0o660)],
  ['others reach its directory', {}, (path: string) => chmodSync(dirname(path), 0o755)],
  ['it belongs to another user than the one that is named', { ownerUid: ANOTHER_UID }, () => {}],
] as const)('no byte goes out where %s', async (_name, address, change) => {
  const path = socketPath()
  const { heard } = await listener(path)
  change(path)
  const client = new SidecarClient({ ...address, path }, { clock })
  await expect(client.startMediatedExecution(start)).rejects.toMatchObject({
    code: 'custody',
    outcome: 'not_started',
  })
  expect(heard()).toBe(0)
})

testWhen(
  isRoot,
  SKIP_REASONS.needsRoot,
  'no byte goes out where another process serves than the owner of the socket',
  async () => {
    const path = socketPath()
    const { heard } = await listener(path)
    for (const file of [dirname(path), path]) chownSync(file, ANOTHER_UID, ANOTHER_UID)
    const client = new SidecarClient({ ownerUid: ANOTHER_UID, path }, { clock, timeoutMs: 50 })
    await expect(client.startMediatedExecution(start)).rejects.toMatchObject({
      code: 'peer_mismatch',
      outcome: 'not_started',
    })
    expect(heard()).toBe(0)
  },
)
