// A name that a user gave on the command line, judged before it goes into a document: what no document can
// hold is a fault of the command line, said in a sentence, and never a stack.
import { encode, identifier } from '../protocol/codec.js'
import { BrokerError, isBrokerError } from '../protocol/errors.js'
import { MAXIMUM_IDENTIFIER_BYTES } from '../protocol/limits.js'
import { given } from './output.js'

/** @throws BrokerError `usage` naming the option or argument. */
export function namedText(text: string, what: string, maximumBytes = MAXIMUM_IDENTIFIER_BYTES): string {
  try {
    encode(identifier(maximumBytes), text)
    return text
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause
    throw new BrokerError(
      'usage',
      `${what} refused: expected 1 to ${maximumBytes} bytes without control characters or outer spaces, got ${given(text)} of ${Buffer.byteLength(text)} bytes`,
      { cause },
    )
  }
}

/** What a document refuses of an option's value is a fault of the command line too. @throws BrokerError `usage`. */
export function fromOption<T>(option: string, read: () => T): T {
  try {
    return read()
  } catch (cause) {
    if (!isBrokerError(cause)) throw cause
    throw new BrokerError('usage', `${option}: ${cause.message}`, { cause })
  }
}
