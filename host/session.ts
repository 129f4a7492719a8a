// One host: its pins, its caller and journal keys, where it keeps its runs, and its two clients.
import { BrokerClient } from '../client/broker-client.js'
import { KernelClient } from '../client/kernel-client.js'
import type { Clock } from '../protocol/clock.js'
import type { SigningKey } from '../protocol/keys.js'
import type { HostPins } from './pins.js'
import type { AtMoment } from './timeline.js'

/** What a host is opened with. The keys stay the caller's to wipe. */
export interface HostOptions {
  readonly pins: HostPins
  readonly caller: SigningKey
  /** 32 bytes; encrypts the private journal. */
  readonly journalKey: Uint8Array
  /** Folder of the private journal, 0700, one folder an attempt below it. */
  readonly runsDirectory: string
  readonly clock: Clock
  /** Called between the steps of every run of this session; a crash test ends a process there. */
  readonly atMoment?: AtMoment | undefined
}

/** An open host. Close it to drop its connection to the kernel. */
export interface HostSession extends HostOptions {
  readonly broker: BrokerClient
  readonly kernel: KernelClient
  close(): void
}

/** Opens a host; no connection is made before the first call. */
export function openHost(options: HostOptions): HostSession {
  const kernel = new KernelClient(options.pins.kernel, options.clock)
  const broker = new BrokerClient(options.pins.broker, options.clock)
  return { ...options, broker, kernel, close: () => kernel.close() }
}
