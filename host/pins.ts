// The host's pins: sockets, owners and keys of one broker and one kernel, written by `chio init` and
// owned by root (or the single user). Nothing in them comes from a peer.
import type { BrokerPins, KernelPins } from '../client/broker-pins.js'
import { BrokerError } from '../protocol/errors.js'
import { parseConfigurationJson } from '../protocol/json.js'
import { admitPublicKey, type PublicKey } from '../protocol/keys.js'
import {
  MAXIMUM_REQUEST_FRAME_BYTES,
  MAXIMUM_RESPONSE_FRAME_BYTES,
  MAXIMUM_SOCKET_PATH_BYTES,
} from '../protocol/limits.js'
import { exactly, nullable, readShape, type Shaped, text, whole, word } from '../protocol/shape.js'

export const HOST_PINS_SCHEMA = 'chio.host-pins.v1'

const id = whole(0, 0xffff_fffe)
const key = text(() => true, 'a key')
const name = text(value => value.length >= 1 && value.length <= 512, '1 to 512 characters')
const socket = exactly({
  socketPath: text(
    path => path.startsWith('/') && path.length <= MAXIMUM_SOCKET_PATH_BYTES,
    `an absolute path of at most ${MAXIMUM_SOCKET_PATH_BYTES} characters`,
  ),
  uid: id,
  socketGid: nullable(id),
})

const schema = exactly({
  schema: word(HOST_PINS_SCHEMA),
  brokerReceiptKey: key,
  kernelKey: key,
  tenantScope: name,
  audience: name,
  adapter: exactly({ id: name, version: whole(1, 0xffff_ffff) }),
  broker: socket,
  kernel: socket,
  requestFrameBytes: whole(1_024, MAXIMUM_REQUEST_FRAME_BYTES),
  responseFrameBytes: whole(1_024, MAXIMUM_RESPONSE_FRAME_BYTES),
})

/** The document as it stands in `pins.json`. */
export type HostPinsDocument = Shaped<typeof schema>

/** Checked pins, cut to what each client needs. */
export interface HostPins {
  readonly broker: BrokerPins
  readonly kernel: KernelPins
  readonly kernelKey: PublicKey
  readonly audience: string
  readonly adapter: { readonly id: string; readonly version: number }
}

/**
 * Reads pins from the bytes of their file.
 * @throws BrokerError `invalid_configuration` naming the member, or the key's own refusal.
 */
export function parseHostPins(bytes: Uint8Array): HostPins {
  const read = readShape(schema, parseConfigurationJson(bytes, 'pins.json'))
  if ('faults' in read) {
    const { expected, place } = read.faults[0] ?? { expected: 'the documented shape', place: '' }
    throw new BrokerError(
      'invalid_configuration',
      `pins.json ${place || 'document'} refused: expected ${expected}`,
    )
  }
  const pins = read.value
  const { tenantScope, requestFrameBytes, responseFrameBytes } = pins
  return {
    broker: {
      ...pins.broker,
      receiptKey: admitPublicKey(pins.brokerReceiptKey, 'pins.json brokerReceiptKey'),
      tenantScope,
      requestFrameBytes,
      responseFrameBytes,
    },
    kernel: { ...pins.kernel, tenantScope },
    kernelKey: admitPublicKey(pins.kernelKey, 'pins.json kernelKey'),
    audience: pins.audience,
    adapter: pins.adapter,
  }
}
