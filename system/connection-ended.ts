// Owns: the ways in which a connection ends, as one typed error.
// Must never: carry a byte that the peer sent.
import { BrokerError, type ErrorCode } from '../protocol/errors.js'

/**
 * `eof` no more bytes came where some were needed · `reset` the peer went away · `deadline` the absolute deadline
 * passed · `length` the announced length was refused · `surplus` bytes followed a complete frame · `closed` we did.
 */
export type ConnectionEnding = 'eof' | 'reset' | 'deadline' | 'length' | 'surplus' | 'closed'

export class ConnectionEnded extends BrokerError {
  readonly ending: ConnectionEnding
  /** Bytes of the unfinished frame that had arrived, its prefix included. */
  readonly receivedBytes: number
  /** The length that its prefix announced, where that much had arrived: all that is known of a refused length. */
  readonly announcedBytes: number | undefined

  constructor(ending: ConnectionEnding, sentence: string, receivedBytes: number, announcedBytes?: number) {
    super(codeOf(ending, receivedBytes), sentence, { outcome: 'not_started' })
    this.ending = ending
    this.receivedBytes = receivedBytes
    this.announcedBytes = announcedBytes
  }
}

/** Whether the peer ended where a frame could have begun: how a persistent connection normally ends. */
export function endedBetweenFrames(error: unknown): boolean {
  return (
    error instanceof ConnectionEnded &&
    error.receivedBytes === 0 &&
    error.ending !== 'surplus' &&
    error.ending !== 'length'
  )
}

function codeOf(ending: ConnectionEnding, receivedBytes: number): ErrorCode {
  switch (ending) {
    case 'eof':
      return receivedBytes > 0 ? 'truncated_frame' : 'client_gone'
    case 'reset':
    case 'closed':
      return 'client_gone'
    case 'deadline':
      return 'deadline_expired'
    case 'length':
    case 'surplus':
      return 'invalid_request'
  }
}
