// A prepared stream: one connected descriptor bound to one exact frame. Single use in the type: the
// descriptor leaves it once, by handoff or by submit, and a second try throws before any system call.
import { decodeResponse, type IpcResponse } from '../protocol/envelope.js'
import { BrokerError, isBrokerError } from '../protocol/errors.js'
import { closeDescriptor, hungUp, readFrame, writeFully } from '../native/index.js'

export class PreparedStream {
  /** The exact frame that this stream accepts, four length bytes included. */
  readonly frame: Uint8Array
  readonly #responseFrameBytes: number
  #descriptor: number | undefined

  constructor(descriptor: number, frame: Uint8Array, responseFrameBytes: number) {
    this.#descriptor = descriptor
    this.frame = frame
    this.#responseFrameBytes = responseFrameBytes
  }

  /** Gives the descriptor away for a handoff; whoever takes it closes it. */
  takeDescriptor(): number {
    const descriptor = this.#descriptor
    if (descriptor === undefined) {
      throw new BrokerError(
        'prepared_stream_consumed',
        'prepared stream refused: expected an unused one, got one that was handed over, submitted or closed',
      )
    }
    this.#descriptor = undefined
    return descriptor
  }

  /**
   * Submits the frame and reads the one response.
   * @throws BrokerError `outcome_undetermined` when the stream ends without one, or with what is none: the frame
   * was sent, so that only the broker's record can tell.
   */
  async submit(deadlineBootNs: bigint): Promise<{ response: IpcResponse; frame: Uint8Array }> {
    const descriptor = this.takeDescriptor()
    try {
      await writeFully(descriptor, this.frame, deadlineBootNs)
      const frame = await readFrame(descriptor, {
        maximumFrameBytes: this.#responseFrameBytes,
        deadlineBootNs,
      })
      if (frame === null) throw undetermined()
      return { response: decodeResponse(frame, 'execute'), frame }
    } catch (error) {
      throw isBrokerError(error) && error.code === 'outcome_undetermined' ? error : undetermined(error)
    } finally {
      closeDescriptor(descriptor)
    }
  }

  /** Whether its broker ended the preparation, or ended itself: to be asked before anything is spent on it. */
  isEndedByBroker(): boolean {
    return this.#descriptor !== undefined && hungUp(this.#descriptor)
  }

  /** Closes the stream unless it was given away. The broker sees its end at once. */
  close(): void {
    if (this.#descriptor === undefined) return
    closeDescriptor(this.takeDescriptor())
  }
}

function undetermined(cause?: unknown): BrokerError {
  return new BrokerError(
    'outcome_undetermined',
    "submit ended without a response: the outcome is in the broker's record alone; read it before anything else",
    { outcome: 'unknown', cause },
  )
}
