// Owns one turn of the event loop, given between two slices of a large frame so that control operations are
// answered meanwhile.
import { setImmediate as nextTurn } from 'node:timers/promises'

export function turnOfLoop(): Promise<void> {
  return nextTurn()
}
