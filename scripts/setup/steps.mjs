// Owns the order of the set-up. Each step looks first, does nothing when its work stands, and says how long it
// took otherwise. It must never leave a half-done step looking done.
import { ROOT } from './checkout.mjs'
import { provideCompiledCode } from './compiled-code.mjs'
import { sentenceFor } from './failure.mjs'
import { say, secondsSince } from './long-step.mjs'
import { provideNativeParts } from './native-parts.mjs'
import { provideNodeModules } from './node-modules.mjs'
import { provideSystemPackages } from './system-packages.mjs'
import { takeTurn } from './turn.mjs'

const STEPS = [provideSystemPackages, provideNodeModules, provideNativeParts, provideCompiledCode]

/** @returns {Promise<number>} the exit code */
export async function setUp() {
  const startedMs = Date.now()
  const giveBack = await takeTurn(ROOT)
  try {
    let didSomething = false
    for (const step of STEPS) didSomething = (await step()) || didSomething
    say(
      didSomething
        ? `ready in ${secondsSince(startedMs)} s`
        : `everything is in place (${secondsSince(startedMs)} s)`,
    )
    return 0
  } catch (error) {
    const sentence = sentenceFor(error)
    if (sentence === undefined) throw error
    process.stderr.write(`setup: ${sentence}\n`)
    return 1
  } finally {
    giveBack()
  }
}
