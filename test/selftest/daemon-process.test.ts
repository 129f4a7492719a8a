import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { DaemonProcess } from '../../selftest/daemon-process.js'

/** A process that ends at the so-maniest SIGTERM. */
async function stubborn(signals: number): Promise<DaemonProcess> {
  const script = `let seen = 0
process.on('SIGTERM', () => { if (++seen === ${signals}) process.exit(7) })
setInterval(() => {}, 1_000)
console.log('here')`
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'exit').then(([code, signal]) => ({
    code: code as number | null,
    signal: signal as NodeJS.Signals | null,
  }))
  await once(child.stdout, 'data')
  return new DaemonProcess('stubborn', child, [], ended)
}

test.each([
  ['at its first word', 1, 7],
  ['at its second word, after its drain took too long', 2, 7],
  ['by force when it hears neither', 3, 137],
])('a daemon is ended %s', async (_how, signals, code) => {
  const daemon = await stubborn(signals)
  const patient = 20_000
  const drainMs = signals === 1 ? patient : 50
  expect(await daemon.stop({ drainMs, hurryMs: signals === 3 ? 50 : patient })).toBe(code)
})
