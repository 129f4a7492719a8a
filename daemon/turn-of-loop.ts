// Owns the turns of the event loop that long work gives away, so that control operations are answered meanwhile.
// Must never: let many large frames have a slice each in one turn: whoever asks for the slot would wait for all.
import { setImmediate as nextTurn } from 'node:timers/promises'

const waiting: (() => void)[] = []
let isArmed = false

/** One turn of the event loop. */
export function turnOfLoop(): Promise<void> {
  return nextTurn()
}

/** Gives the loop back between two slices of a large frame; all who do so take turns, one slice a turn. */
export function nextSlice(): Promise<void> {
  return new Promise(resolve => {
    waiting.push(resolve)
    arm()
  })
}

function arm(): void {
  if (isArmed || waiting.length === 0) return
  isArmed = true
  setImmediate(() => {
    isArmed = false
    waiting.shift()?.()
    arm()
  })
}
