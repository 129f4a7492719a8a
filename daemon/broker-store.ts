// Owns where the broker's records are: `broker.db` in its state directory, provisioned once, opened ever after.
// Must never: provision when an open fails, since a missing history is not an empty one.
import { join } from 'node:path'
import type { Clock } from '../protocol/clock.js'
import { type OpenOptions, openStore } from '../store/open.js'
import { provisionStore } from '../store/provision.js'
import type { Store } from '../store/store.js'
import { BROKER_STORE_FILE } from './config.js'
import { BROKER_SCHEMA } from './schema.js'

export function brokerStorePath(stateDirectory: string): string {
  return join(stateDirectory, BROKER_STORE_FILE)
}

/** Makes the store, once. @throws BrokerError `storage` when one exists. */
export async function provisionBrokerStore(stateDirectory: string, clock: Clock): Promise<void> {
  await provisionStore(brokerStorePath(stateDirectory), BROKER_SCHEMA, { clock })
}

/** @throws BrokerError `another_instance`, `store_missing`, `store_replaced` or `storage`. */
export function openBrokerStore(stateDirectory: string, options: OpenOptions): Promise<Store> {
  return openStore(brokerStorePath(stateDirectory), BROKER_SCHEMA, options)
}
