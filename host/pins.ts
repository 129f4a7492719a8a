// The host's pins: sockets, owners and keys of one broker and one kernel, written by `chio init` and
// owned by root (or the single user). Nothing in them comes from a peer.
import { z } from 'zod'
import type { BrokerPins, KernelPins } from '../client/broker-pins.js'
import { BrokerError } from '../protocol/errors.js'
import { parseStrictJson } from '../protocol/json.js'
import { admitPublicKey, type PublicKey } from '../protocol/keys.js'
import {
  MAXIMUM_REQUEST_FRAME_BYTES,
  MAXIMUM_RESPONSE_FRAME_BYTES,
  MAXIMUM_SOCKET_PATH_BYTES,
} from '../protocol/limits.js'

export const HOST_PINS_SCHEMA = 'chio.host-pins.v1'

const id = z.number().int().min(0).max(0xffff_fffe)
const socket = z.strictObject({
  socketPath: z.string().startsWith('/').max(MAXIMUM_SOCKET_PATH_BYTES),
  uid: id,
  socketGid: id.nullable(),
})

const schema = z.strictObject({
  schema: z.literal(HOST_PINS_SCHEMA),
  brokerReceiptKey: z.string(),
  kernelKey: z.string(),
  tenantScope: z.string().min(1).max(512),
  audience: z.string().min(1).max(512),
  adapter: z.strictObject({
    id: z.string().min(1).max(512),
    version: z.number().int().min(1).max(0xffff_ffff),
  }),
  broker: socket,
  kernel: socket,
  requestFrameBytes: z.number().int().min(1_024).max(MAXIMUM_REQUEST_FRAME_BYTES),
  responseFrameBytes: z.number().int().min(1_024).max(MAXIMUM_RESPONSE_FRAME_BYTES),
})

/** The document as it stands in `pins.json`. */
export type HostPinsDocument = z.infer<typeof schema>

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
  const parsed = schema.safeParse(parseStrictJson(bytes, 'pins.json'))
  if (!parsed.success) {
    const issue = parsed.error.issues[0]
    const member = issue?.path.join('.') || 'document'
    throw new BrokerError(
      'invalid_configuration',
      `pins.json ${member} refused: ${issue?.message ?? 'unknown'}`,
    )
  }
  const pins = parsed.data
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
