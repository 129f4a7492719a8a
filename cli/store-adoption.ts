// chio store adopt: accepts once, for one store, that the device number of its disk alone changed. The administrator
// signs the very change; the store's own configuration says whose signature counts; the document stays in the store.
// Nothing else of a store is ever mended here. As root the store is touched under its owner's uid alone.
import { randomUUID } from 'node:crypto'
import { brokerStorePath } from '../daemon/broker-store.js'
import { readConfig } from '../daemon/config.js'
import { BROKER_SCHEMA } from '../daemon/schema.js'
import { readKernelConfig } from '../kernel/config.js'
import { KERNEL_STORE_SCHEMA } from '../kernel/sqlite/schema.js'
import { kernelStorePath } from '../kernel/start-kernel.js'
import { systemClock } from '../native/clock.js'
import { type AdminPolicy, signAdminRequest, verifyAdminAuthorization } from '../protocol/administration.js'
import { canonicalBytes } from '../protocol/canonical.js'
import { unixSeconds } from '../protocol/clock.js'
import { BrokerError } from '../protocol/errors.js'
import type { SigningKey } from '../protocol/keys.js'
import { type AdoptionRequest, adoptStore } from '../store/adopt.js'
import { ADMINISTRATOR_SUBJECT } from '../system/configuration.js'
import { type Identity, readIdentities } from '../system/identities.js'
import { readKey } from '../system/key-file.js'
import type { Layout } from '../system/layout.js'
import { type CommonOptions, print } from './output.js'
import { findState, layoutOfState } from './state.js'
import { withKeyOf } from './wiped-key.js'

const ADOPTION_SCHEMA = 'chio.store-adoption.v1'
const OPERATION = 'adopt_store'
const TOKEN_LIFETIME_SECONDS = 60

/** What the owner of a store knows of it. */
interface AdoptableStore {
  readonly path: string
  readonly schema: typeof BROKER_SCHEMA
  readonly policy: AdminPolicy
  readonly tenantScope: string
}

/** Adopts one store. Its daemon must be stopped. */
export async function adopt(whose: string, options: CommonOptions): Promise<void> {
  const layout = layoutOfState(findState(options.state))
  if (whose !== 'broker' && whose !== 'kernel')
    throw new BrokerError('usage', `store refused: expected broker or kernel, got another word`)
  const identities = readIdentities(layout.identities)
  const change = await withKeyOf(readKey({ file: layout.adminKey }, 'admin key'), key =>
    asOwner(identities[whose], async () => {
      const { path, schema, ...rules } = whose === 'broker' ? brokerStore(layout) : kernelStore(layout)
      return adoptStore(path, schema, {
        clock: systemClock,
        authorize: request => signedAdoption(request, rules, key),
      })
    }),
  )
  print(options, { schema: ADOPTION_SCHEMA, store: whose, ...change }, [
    `${whose}: device ${change.foundDevice} accepted in the place of ${change.pinnedDevice}`,
  ])
}

/** Files that SQLite makes must be the daemon's, and its folder lets nobody else in. */
async function asOwner<T>(owner: Identity, act: () => Promise<T>): Promise<T> {
  const [uid, gid] = [process.geteuid?.() ?? 0, process.getegid?.() ?? 0]
  if (uid !== 0 || owner.uid === 0) return act()
  process.setegid?.(owner.gid)
  process.seteuid?.(owner.uid)
  try {
    return await act()
  } finally {
    process.seteuid?.(uid)
    process.setegid?.(gid)
  }
}

function brokerStore(layout: Layout): AdoptableStore {
  const { administrators: policy, stateDirectory, tenantScope } = readConfig(layout.broker.config)
  return { path: brokerStorePath(stateDirectory), schema: BROKER_SCHEMA, policy, tenantScope }
}

function kernelStore(layout: Layout): AdoptableStore {
  const config = readKernelConfig(layout.kernel.config)
  const { administrators: policy, tenantScope } = config
  return { path: kernelStorePath(config), schema: KERNEL_STORE_SCHEMA, policy, tenantScope }
}

/** @returns what is kept in the store. @throws BrokerError `authorization_denied` for a key that does not count. */
function signedAdoption(
  request: AdoptionRequest,
  { policy, tenantScope }: Pick<AdoptableStore, 'policy' | 'tenantScope'>,
  key: SigningKey,
): Uint8Array {
  const issuedAtUnixSeconds = unixSeconds(systemClock)
  const asked = { operation: OPERATION, payload: canonicalBytes({ ...request }), tenantScope }
  const statement = {
    subject: ADMINISTRATOR_SUBJECT,
    requestId: randomUUID(),
    issuedAtUnixSeconds,
    lifetimeSeconds: TOKEN_LIFETIME_SECONDS,
  }
  const authorization = signAdminRequest(asked, statement, key)
  verifyAdminAuthorization(authorization, asked, policy, issuedAtUnixSeconds)
  return canonicalBytes({ authorization, request: { ...request }, schema: ADOPTION_SCHEMA })
}
