// Owns: what a signal to end means: the first is a request, the same one again is impatience. A hangup is a request only:
// a terminal that closes sends it to everybody in it, and its shell once more.
// Must never: take one request that came twice for impatience: a terminal sends SIGINT to everybody in it, and whoever
// started us sends SIGTERM on top. Source: signal(7), systemd.kill(5), termios(3) on modem disconnect.

const ASKING = ['SIGTERM', 'SIGINT'] as const
const HANGUP = 'SIGHUP'

/** Calls `stop` once, and `hurry` when a signal comes that came before, but for a hangup. */
export function onStopSignals(stop: (signal: NodeJS.Signals) => void, hurry: () => void): void {
  const seen = new Set<NodeJS.Signals>()
  const hear = (signal: NodeJS.Signals): void => {
    const isFirst = seen.size === 0
    const isRepeated = seen.has(signal)
    seen.add(signal)
    if (isFirst) stop(signal)
    else if (isRepeated && signal !== HANGUP) hurry()
  }
  for (const signal of [...ASKING, HANGUP] as const) process.on(signal, () => hear(signal))
}
