// Owns: what a signal to end means: the first is a request, the same one again is impatience.
// Must never: take one request that came twice for impatience: a terminal sends SIGINT to everybody in it, and whoever
// started us sends SIGTERM on top. Source: signal(7), systemd.kill(5).

const STOPPING = ['SIGTERM', 'SIGINT'] as const

/** Calls `stop` once, and `hurry` when a signal comes that came before. */
export function onStopSignals(stop: (signal: NodeJS.Signals) => void, hurry: () => void): void {
  const seen = new Set<NodeJS.Signals>()
  for (const signal of STOPPING) {
    process.on(signal, () => {
      const isFirst = seen.size === 0
      const isRepeated = seen.has(signal)
      seen.add(signal)
      if (isFirst) stop(signal)
      else if (isRepeated) hurry()
    })
  }
}
