// Owns the start and the end of a broker: store under its owner lock, what was left open settled, then the socket.
// Must never: serve before the records are in order, or start without the key that its identity names.
// Source: the broker protocol, sections 8.5, 12 and 15.
import type { Clock } from '../protocol/clock.js'
import { BrokerError } from '../protocol/errors.js'
import type { SigningKey } from '../protocol/keys.js'
import type { SlotStatus } from '../protocol/status.js'
import type { Store } from '../store/store.js'
import { type Cutpoint, cutpointsOf } from '../system/cutpoints.js'
import { CallPlaces } from '../system/call-places.js'
import { FrameAdmission } from '../system/frame-admission.js'
import { type ConnectionRefusal, listen, type Listener } from '../system/listener.js'
import { judgePeer } from '../system/peer.js'
import type { SupervisedDaemon } from '../system/supervision.js'
import { AuthorityClient } from './authority-client.js'
import { openBrokerStore } from './broker-store.js'
import type { BrokerdConfig } from './config.js'
import { CredentialVault } from './credentials.js'
import { Drain } from './drain.js'
import { type BrokerLog, faultFields, limitedLog } from './log.js'
import type { BrokerParts } from './parts.js'
import { LocalProviders } from './provider/local-providers.js'
import { type HostLookup, PublicResolver } from './provider/resolve.js'
import { warmTrust } from './provider/trust.js'
import { Recorder } from './recorder.js'
import { settleOpenAttempts } from './recovery.js'
import { ReplayTurns } from './replay-turns.js'
import { Refused } from './refused.js'
import type { RefusalReason } from './refusals.js'
import { serveConnection } from './serve.js'
import { SlotDesk } from './slot-desk.js'
import { SlotGuard } from './slot-guard.js'
import { ResponseVault } from './stored-responses.js'
import { SupervisedBroker } from './supervised-broker.js'

export interface BrokerOptions {
  readonly config: BrokerdConfig
  /** 32 bytes; overwritten once the keys are derived. */
  readonly masterKey: Uint8Array
  readonly receiptKey: SigningKey
  readonly clock: Clock
  readonly log: BrokerLog
  /** Called at every durable boundary and message; a crash test ends the process there. */
  readonly atCutpoint?: Cutpoint
  readonly lookupHost?: HostLookup
  /** Where a service manager bound the socket already. */
  readonly activatedDescriptor?: number | undefined
}

export interface Broker {
  /** Says in the log that it serves. Whoever reads that may stop it at once: signals to end are listened for by then. */
  sayReady(): void
  slotStatus(): SlotStatus
  /** What a service manager is told while it serves. */
  supervised(): SupervisedDaemon
  /** Takes nothing new up, lets what was dispatched finish, gives everything back. Safe to repeat. */
  close(): Promise<void>
  /** The longest that closing may take from now on. */
  readonly closesWithinMs: number
  /** Closes without waiting for a provider: what it did becomes an unknown outcome. Safe to repeat. */
  hurry(): void
}

/** @throws BrokerError `custody`, `another_instance`, `store_missing`, `store_replaced` or `storage`. */
export async function startBroker(options: BrokerOptions): Promise<Broker> {
  const { config, receiptKey } = options
  if (receiptKey.publicKey !== config.brokerIdentity) {
    throw new BrokerError(
      'custody',
      'receipt signing key refused: expected the one whose public key is brokerIdentity, got another; see the configuration',
    )
  }
  const atCutpoint = cutpointsOf('broker', options.atCutpoint)
  const store = await openBrokerStore(config.stateDirectory, { clock: options.clock, atCutpoint })
  try {
    const broker = new RunningBroker(options, store, atCutpoint)
    await broker.start()
    return broker
  } catch (error) {
    store.close()
    throw error
  }
}

const TURNED_AWAY: Partial<Record<ConnectionRefusal['reason'], RefusalReason>> = {
  capacity: 'connection_capacity',
  connector_capacity: 'connection_capacity',
  dropped: 'connection_dropped',
  uid_capacity: 'connection_capacity',
}

class RunningBroker implements Broker {
  readonly #parts: BrokerParts
  readonly #drain: Drain
  readonly #activatedDescriptor: number | undefined
  readonly #serving = new Set<Promise<void>>()
  #listener: Listener | undefined
  #stopping = false
  #settled = 0
  #closed: Promise<void> | undefined

  constructor(options: BrokerOptions, store: Store, atCutpoint: Cutpoint) {
    const { config, clock, masterKey, receiptKey } = options
    const log = limitedLog(options.log, clock)
    const credentials = new CredentialVault(masterKey, config.tenantScope)
    const responses = new ResponseVault(masterKey)
    masterKey.fill(0)
    const guard = new SlotGuard(clock, config.providerTimeoutCeilingMs)
    const recorder = new Recorder({ store, clock, receiptKey, responses, log })
    this.#parts = {
      config,
      clock,
      log,
      store,
      receiptKey,
      credentials,
      responses,
      recorder,
      replays: new ReplayTurns(),
      calls: new CallPlaces(),
      atCutpoint,
      authority: new AuthorityClient({ config, clock, key: receiptKey }),
      desk: new SlotDesk({
        clock,
        recorder,
        log,
        guard,
        decryptions: () => credentials.decryptions,
        isStopping: () => this.#stopping,
      }),
      localProviders: new LocalProviders(config.localProviders),
      resolver: new PublicResolver(options.lookupHost),
      isStopping: () => this.#stopping,
      isHurried: () => this.#drain.isHurried,
    }
    this.#drain = new Drain(this.#parts)
    this.#activatedDescriptor = options.activatedDescriptor
  }

  async start(): Promise<void> {
    const { clock, config, credentials, log, store } = this.#parts
    credentials.assertMasterKey(store)
    this.#settled = await settleOpenAttempts(this.#parts)
    this.#listener = await listen({
      path: config.socketPath,
      socketGid: config.socketGid,
      activatedDescriptor: this.#activatedDescriptor,
      clock,
      mode: 'exchange',
      admission: new FrameAdmission(),
      admit: peer => judgePeer(peer, config.clients) !== undefined,
      onConnection: (connection, peer) => this.#track(serveConnection(this.#parts, connection, peer)),
      onFault: error => log.error(faultFields(error), 'connection failed'),
      onRefused: refusal => this.#turnedAway(refusal),
    })
    // Served first: who asks at once waits for the rest of it, who starts us waits for none.
    setImmediate(warmTrust)
  }

  sayReady(): void {
    const { config, log } = this.#parts
    const providers = config.localProviders.map(({ host, port, address }) => `${host}:${port}=${address}`)
    log.info(
      {
        event: 'ready',
        socketPath: config.socketPath,
        settled: this.#settled,
        localProviders: providers.join(' '),
      },
      'ready',
    )
  }

  slotStatus(): SlotStatus {
    return this.#parts.desk.status()
  }

  supervised(): SupervisedDaemon {
    const isListening = (): boolean => this.#listener?.isListening === true
    return new SupervisedBroker({ ...this.#parts, isListening })
  }

  get closesWithinMs(): number {
    return this.#drain.atMostMs
  }

  hurry(): void {
    this.#drain.hurry()
  }

  close(): Promise<void> {
    return (this.#closed ??= this.#close())
  }

  async #close(): Promise<void> {
    const { authority, credentials, log, recorder, responses, store } = this.#parts
    this.#stopping = true
    await this.#drain.run(this.#serving)
    await this.#listener?.close()
    authority.close()
    recorder.close()
    store.close()
    credentials.wipe()
    responses.wipe()
    log.info({ event: 'stopped' }, 'stopped')
  }

  async #track(serving: Promise<void>): Promise<void> {
    this.#serving.add(serving)
    try {
      await serving
    } finally {
      this.#serving.delete(serving)
    }
  }

  #turnedAway({ reason, uid, pid }: ConnectionRefusal): void {
    const refused = new Refused(TURNED_AWAY[reason] ?? 'peer_denied', reason)
    this.#parts.log.warn(
      { connectorPid: pid, connectorUid: uid, ...faultFields(refused) },
      'connector turned away',
    )
  }
}
