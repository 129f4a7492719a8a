// The tool's side of a prepared stream: adopts descriptor 8 as it is, submits the exact frame once,
// reads one response under a bound. Opens no connection, ever.
import { BrokerError } from '../protocol/errors.js'
import { MAXIMUM_RESPONSE_FRAME_BYTES } from '../protocol/limits.js'
import { socketInfo } from '../native/index.js'
import { PreparedStream } from './prepared-stream.js'

/** The descriptor on which a caged tool finds its stream. */
export const TOOL_DESCRIPTOR = 8

/**
 * Adopts a descriptor after checking that it is a connected Unix stream.
 * @param frame the exact request frame, four length bytes included (`/run/chio/request.frame`).
 * @throws BrokerError `not_a_prepared_stream` saying what the descriptor is.
 */
export function adoptPreparedStream(frame: Uint8Array, descriptor = TOOL_DESCRIPTOR): PreparedStream {
  const found = describe(descriptor)
  if (found !== 'a connected Unix stream') {
    throw new BrokerError(
      'not_a_prepared_stream',
      `descriptor ${descriptor} refused: expected a connected Unix stream, got ${found}`,
    )
  }
  return new PreparedStream(descriptor, frame, MAXIMUM_RESPONSE_FRAME_BYTES)
}

function describe(descriptor: number): string {
  try {
    const info = socketInfo(descriptor)
    if (info.listening) return 'a listening socket'
    if (info.domain !== 'unix') return `a socket of another family (${info.domain})`
    if (info.type !== 'stream') return `a Unix ${info.type} socket`
    return info.connected ? 'a connected Unix stream' : 'an unconnected Unix stream'
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    return code === 'EBADF' ? 'nothing (it is closed)' : 'something that is no socket'
  }
}
