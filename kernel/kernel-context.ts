// Owns: what every part of the kernel works with: configuration, keys, clock, store, broker records, log.
// Must never: be built with one of them missing.
import { BrokerError } from '../protocol/errors.js'
import type { Clock } from '../protocol/clock.js'
import type { PublicKey, SigningKey } from '../protocol/keys.js'
import { KEY_BYTES } from '../protocol/limits.js'
import type { Cutpoint } from '../system/cutpoints.js'
import type { AdmissionStore } from './admission-store.js'
import type { CallPolicy } from './calls/call-store.js'
import type { BrokerRecords } from './settling/broker-records.js'
import type { OutputGuard } from './output/output-guards.js'
import type { Outstanding } from './serving/outstanding.js'
import type { KernelClientEntry, KernelConfig } from './config.js'

export interface KernelKeys {
  /** Execution nonces. */
  readonly kernel: SigningKey
  /** Registration authorizations and the answers of the authority. */
  readonly authority: SigningKey
  /** Broker capabilities. */
  readonly issuer: SigningKey
  /** 32 bytes under which retained requests are encrypted. */
  readonly storage: Uint8Array
}

/** One line of the log: identifiers, digests, codes; never content. */
export interface KernelEvent {
  readonly level: 'error' | 'info' | 'warn'
  readonly event: string
  readonly [field: string]: boolean | number | string | null
}
export type KernelLog = (event: KernelEvent) => void

export interface KernelParts {
  readonly config: KernelConfig
  readonly keys: KernelKeys
  readonly clock: Clock
  readonly records: BrokerRecords
  readonly log: KernelLog
}

export interface KernelContext extends KernelParts {
  /** Judge what was delivered, in their order. */
  readonly guards: readonly OutputGuard[]
  readonly store: AdmissionStore
  readonly callPolicy: CallPolicy
  readonly outstanding: Outstanding
  /** Called at every message to and from others; a crash test ends the process there. */
  readonly atCutpoint: Cutpoint
}

/** Who asks: the client entry that the connection's peer was judged to be. */
export type Caller = Pick<KernelClientEntry, 'callerPublicKey' | 'uid'>

export interface KernelPublicKeys {
  readonly kernel: PublicKey
  readonly authority: PublicKey
  readonly issuer: PublicKey
}

/** @throws BrokerError `invalid_configuration`: one refusal that lists everything that is missing. */
export function assertComplete(
  parts: {
    readonly [K in keyof Omit<KernelParts, 'log'>]?: KernelParts[K] | undefined
  },
): void {
  const { clock, config, keys, records } = parts
  const missing = [
    ...(config === undefined ? ['configuration'] : []),
    ...(clock === undefined ? ['clock'] : []),
    ...(records === undefined ? ['broker records'] : []),
    ...(['kernel', 'authority', 'issuer'] as const)
      .filter(name => keys?.[name] === undefined)
      .map(name => `${name} key`),
    ...(keys?.storage?.length === KEY_BYTES ? [] : ['storage key']),
  ]
  if (missing.length === 0) return
  throw new BrokerError('invalid_configuration', `kernel refused: expected ${missing.join(', ')}, got none`)
}
