// Owns reading and writing of documents in tests of the codecs, as text that a person can check by eye.
import { expect } from 'vitest'
import { type Codec, decode, encode } from '../../protocol/codec.js'
import { BrokerError } from '../../protocol/errors.js'

export const utf8 = (value: string): Uint8Array => Buffer.from(value, 'utf8')
/** For the names of tests, which a terminal prints. */
export const printable = (value = ''): string => encodeURI(value)
export const read = <T>(codec: Codec<T>, value: string | Uint8Array): T =>
  decode(codec, typeof value === 'string' ? utf8(value) : value, 'document')
export const write = <T>(codec: Codec<T>, value: T): string =>
  Buffer.from(encode(codec, value)).toString('utf8')

export function refusal(codec: Codec<unknown>, value: string | Uint8Array): string {
  try {
    read(codec, value)
    return 'accepted'
  } catch (error) {
    if (!(error instanceof BrokerError)) throw error
    expect(error.code).toBe('invalid_request')
    return error.message
  }
}
