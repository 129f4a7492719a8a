// One question to the kernel under the calling user's own uid: the kernel shows a client its own and a peer without
// a caller key, such as root, everything. No key is read.
import { KernelClient } from '../client/kernel-client.js'
import { systemClock } from '../native/clock.js'
import { readPins } from './host-session.js'
import type { CommonOptions } from './output.js'
import { findState, layoutOfState } from './state.js'

/** Asks and closes the connection whatever comes of it. */
export async function withKernel<T>(
  options: CommonOptions,
  ask: (kernel: KernelClient) => Promise<T>,
): Promise<T> {
  const kernel = new KernelClient(readPins(layoutOfState(findState(options.state))).kernel, systemClock)
  try {
    return await ask(kernel)
  } finally {
    kernel.close()
  }
}
