import { describe, expect, test } from 'vitest'
import { judgePeer, overflowUid, type PeerIdentity } from '../../system/peer.js'
import type { FramedConnection } from '../../system/framed-connection.js'
import { startChild } from '../support/compiled-child.js'
import { makeSocketFolder, serve } from '../support/test-listener.js'

const peer = (over: Partial<PeerIdentity> = {}): PeerIdentity => ({
  uid: 1_000,
  gid: 100,
  gids: [100, 27],
  pid: 1,
  pidfdSource: 'so_peerpidfd',
  isAlive: () => true,
  close: () => {},
  ...over,
})
const CLIENTS = [
  { uid: 0, gids: [0], name: 'root' },
  { uid: 1_000, gids: [100, 101], name: 'operator' },
]

describe('judging a peer', () => {
  test('finds the client with its uid and one of its gids', () => {
    expect(judgePeer(peer(), CLIENTS)?.name).toBe('operator')
    expect(judgePeer(peer({ gid: 101 }), CLIENTS)?.name).toBe('operator')
  })

  test('refuses another uid, another gid, also when a supplementary group would fit, and the dead', () => {
    expect(judgePeer(peer({ uid: 1_001 }), CLIENTS)).toBeUndefined()
    expect(judgePeer(peer({ gid: 27, gids: [100] }), CLIENTS)).toBeUndefined()
    expect(judgePeer(peer({ isAlive: () => false }), CLIENTS)).toBeUndefined()
  })

  test('refuses the overflow uid even where it is configured', () => {
    expect(judgePeer(peer({ uid: overflowUid() }), [{ uid: overflowUid(), gids: [100] }])).toBeUndefined()
  })
})

test('a peer is alive until its process ends, not until its stream does', async () => {
  const place = makeSocketFolder()
  const seen: { connection: FramedConnection; peer: PeerIdentity }[] = []
  const listener = await serve(place.path, {
    onConnection: async (connection, peerIdentity) => {
      seen.push({ connection, peer: peerIdentity })
      await connection.ended
    },
  })
  const child = startChild(
    `const { connect } = await import('node:net')
     connect(args[0]).on('connect', () => say({ connected: true }))`,
    [place.path],
  )
  await child.next()
  await expect.poll(() => seen).toHaveLength(1)
  expect(seen[0]?.peer).toMatchObject({ pid: child.process.pid })
  expect(seen[0]?.peer.isAlive()).toBe(true)
  await child.kill()
  expect(seen[0]?.peer.isAlive()).toBe(false)
  seen[0]?.connection.closeNow()
  await expect.poll(() => listener.connections).toBe(0)
  expect(seen[0]?.peer.isAlive()).toBe(false)
  await listener.close()
  place.remove()
})
