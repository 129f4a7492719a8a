// Owns whose turn it is: one set-up at a time in one checkout, so that `npm test` and `npm run demo` started
// together do not install into each other. An abstract socket is the lock: the kernel drops it with its process.
import { createHash } from 'node:crypto'
import { createServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { say } from './long-step.mjs'

const LOOK_AGAIN_MS = 200

/**
 * Waits for the turn.
 * @param {string} root the checkout
 * @returns {Promise<() => void>} gives the turn back
 */
export async function takeTurn(root) {
  const name = `\0chio-setup-${createHash('sha256').update(root).digest('hex').slice(0, 32)}`
  for (let waited = false; ; waited = true) {
    const release = await tryTurn(name)
    if (release !== undefined) return release
    if (!waited) say('another set-up of this checkout is running: waiting for it')
    await delay(LOOK_AGAIN_MS)
  }
}

/**
 * @param {string} name
 * @returns {Promise<(() => void) | undefined>}
 */
function tryTurn(name) {
  return new Promise((resolve, reject) => {
    const server = createServer(socket => socket.destroy())
    server.once('error', error => {
      if ('code' in error && error.code === 'EADDRINUSE') resolve(undefined)
      else reject(error)
    })
    server.listen(name, () => resolve(() => server.close()))
  })
}
