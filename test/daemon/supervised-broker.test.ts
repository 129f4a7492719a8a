import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { brokerStorePath } from '../../daemon/broker-store.js'
import { type BrokerWorld, startWorld } from '../support/broker-world.js'

let world: BrokerWorld
beforeEach(async () => {
  world = await startWorld({ provider: false, provisioned: false })
})
afterEach(() => world.close())

test('a broker proves that it serves by a transaction, which waits for whoever holds the file', async () => {
  const daemon = world.broker.supervised()
  await daemon.assertServing()
  const script = `import sqlite3, sys
store = sqlite3.connect(sys.argv[1], isolation_level=None)
store.execute('BEGIN IMMEDIATE')
print('held', flush=True)
sys.stdin.readline()
store.execute('ROLLBACK')`
  const path = brokerStorePath(world.stateDirectory)
  const holder = spawn('/usr/bin/python3', ['-c', script, path], { stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = once(holder, 'exit')
  await once(createInterface({ input: holder.stdout }), 'line')
  let proved = false
  const proof = daemon.assertServing().then(() => (proved = true))
  await new Promise(resolve => setTimeout(resolve, 200))
  expect(proved).toBe(false)
  holder.stdin.write('\n')
  await proof
  expect(proved).toBe(true)
  await ended
})

test('a broker that ended proves nothing any more', async () => {
  const daemon = world.broker.supervised()
  await world.stopBroker()
  await expect(daemon.assertServing()).rejects.toMatchObject({ code: 'storage' })
})
