// Owns how the provider of a soak answers: mostly as it should, else late, in drips, not at all, half, too much, with
// the credential in it, or with a reset. The count of the request stands before any of it.
// Must never: answer one request twice.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Hit } from '../crash/hit-provider.js'
import type { Random } from '../fuzz/random.js'

export const ANSWERS = [
  'answered',
  'answered late',
  'dripped',
  'dripped too long',
  'failed with 500',
  'half answered',
  'reflected',
  'reset',
  'stalled',
  'too large',
] as const
export type Answer = (typeof ANSWERS)[number]

/** One request of so many is answered in another way than the first two. */
const HOSTILE_ONE_OF = 3
const LATE_MS = 250
const DRIP_BYTES = 12
const DRIP_MS = 15
/** A request of a soak may take a second in all. */
const LONG_DRIP_MS = 150
const STALL_MS = 2_500
const LARGE_BYTES = 64 * 1024

export function answerOf(random: Random): Answer {
  if (!random.once(HOSTILE_ONE_OF)) return random.pick(['answered', 'answered late'])
  return random.pick(ANSWERS.slice(2))
}

/** Acts on one request. What it leaves alone is answered as it should be. */
export async function actOn({ response, reset }: Hit, answer: Answer, random: Random): Promise<void> {
  switch (answer) {
    case 'answered':
      return
    case 'answered late':
      return sleep(random.below(LATE_MS))
    case 'dripped':
      return drip(response, DRIP_MS)
    case 'dripped too long':
      return drip(response, LONG_DRIP_MS)
    case 'failed with 500':
      return void response.writeHead(500, { 'content-length': 0 }).end()
    case 'half answered':
      response.writeHead(201, { 'content-length': 2 * DRIP_BYTES }).write('x'.repeat(DRIP_BYTES))
      await sleep(DRIP_MS)
      return void response.destroy()
    case 'reflected': {
      const body = JSON.stringify({ you: response.req.headers.authorization })
      return void response.writeHead(200, { 'content-length': body.length }).end(body)
    }
    case 'reset':
      return reset()
    case 'stalled':
      await sleep(STALL_MS)
      return void response.destroy()
    case 'too large':
      return void response
        .writeHead(200, { 'content-length': LARGE_BYTES })
        .end(Buffer.alloc(LARGE_BYTES, 120))
  }
}

async function drip(response: Hit['response'], pauseMs: number): Promise<void> {
  response.writeHead(201, { 'content-type': 'text/plain', 'content-length': DRIP_BYTES })
  for (let byte = 0; byte < DRIP_BYTES && !response.destroyed; byte += 1) {
    response.write('x')
    await sleep(pauseMs)
  }
  response.end()
}
