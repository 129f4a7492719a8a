// The administrator at the command line: signs one request with the admin key and sends it to broker or
// kernel. The key is read for one command and wiped.
import { randomUUID } from 'node:crypto'
import { BrokerClient } from '../client/broker-client.js'
import { KernelClient } from '../client/kernel-client.js'
import { systemClock } from '../native/clock.js'
import { type AdminRequest, signAdminRequest } from '../protocol/administration.js'
import { unixSeconds } from '../protocol/clock.js'
import { type Codec, encode } from '../protocol/codec.js'
import type { BrokerOperation } from '../protocol/envelope.js'
import { type SigningKey, signingKey } from '../protocol/keys.js'
import { ADMINISTRATOR_SUBJECT } from '../system/configuration.js'
import { readKey } from '../system/key-file.js'
import type { Layout } from '../system/layout.js'
import { readPins } from './host-session.js'

/** Long enough for one command and its retry, far shorter than what a token could be stolen for. */
const TOKEN_LIFETIME_SECONDS = 60

/** An administrator of one installation; close it when the command is done. */
export class Administrator {
  readonly broker: BrokerClient
  readonly kernel: KernelClient
  readonly #key: SigningKey
  readonly #tenantScope: string

  constructor(layout: Layout) {
    const pins = readPins(layout)
    const seed = readKey({ file: layout.adminKey }, 'admin key')
    this.#key = signingKey(seed)
    seed.fill(0)
    this.#tenantScope = pins.broker.tenantScope
    this.broker = new BrokerClient(pins.broker, systemClock)
    this.kernel = new KernelClient(pins.kernel, systemClock)
  }

  /** Signs for one operation and exactly these payload bytes. */
  authorize(operation: string, payload: Uint8Array) {
    const request: AdminRequest = { operation, payload, tenantScope: this.#tenantScope }
    const statement = {
      subject: ADMINISTRATOR_SUBJECT,
      requestId: randomUUID(),
      issuedAtUnixSeconds: unixSeconds(systemClock),
      lifetimeSeconds: TOKEN_LIFETIME_SECONDS,
    }
    return { request, authorization: signAdminRequest(request, statement, this.#key) }
  }

  /** Sends one signed document to the broker. */
  async tellBroker<T>(operation: BrokerOperation, codec: Codec<T>, document: T): Promise<Uint8Array> {
    const { request, authorization } = this.authorize(operation, encode(codec, document))
    return this.broker.administer({ ...request, operation }, authorization)
  }

  close(): void {
    this.#key.wipe()
    this.kernel.close()
  }
}

/** Runs a command as administrator and closes it whatever happens. */
export async function asAdministrator<T>(
  layout: Layout,
  act: (administrator: Administrator) => Promise<T>,
): Promise<T> {
  const administrator = new Administrator(layout)
  try {
    return await act(administrator)
  } finally {
    administrator.close()
  }
}
