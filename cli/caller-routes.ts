// The caller routes of the kernel daemon, as its configuration says. Wiring only.
// Must never: leave a kernel serving without the routes that its configuration names.
import type { KernelConfig } from '../kernel/config.js'
import type { KernelLog } from '../kernel/kernel-context.js'
import type { RunningKernel } from '../kernel/start-kernel.js'
import type { Clock } from '../protocol/clock.js'
import { type ControlToken, readControlToken } from '../sidecar/control-token.js'
import type { RunningSidecar } from '../sidecar/start-sidecar.js'

export interface CallerRoutes {
  readonly clock: Clock
  readonly config: KernelConfig
  readonly controlToken: ControlToken | null
  readonly log: KernelLog
  readonly running: RunningKernel
}

/** Read before anything is opened. @throws BrokerError `custody` or `invalid_configuration`. */
export function configuredControlToken({ callerDelivery }: KernelConfig): ControlToken | null {
  const file = callerDelivery?.controlTokenFile ?? null
  return file === null ? null : readControlToken({ file })
}

/** Serves them, or closes the kernel and throws; null where none are configured. */
export async function serveCallerRoutes(routes: CallerRoutes): Promise<RunningSidecar | null> {
  const { clock, config, controlToken, log, running } = routes
  const listen = config.callerDelivery?.listen ?? null
  if (listen === null) return null
  try {
    // Loaded for whoever serves them: a kernel without starts in half the time.
    const { callerKernelOf } = await import('../sidecar/embedded-kernel.js')
    const { startSidecar } = await import('../sidecar/start-sidecar.js')
    return await startSidecar({ clock, controlToken, kernel: callerKernelOf(running), listen, log })
  } catch (error) {
    await running.close()
    throw error
  }
}
