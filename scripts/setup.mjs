// Owns the door of the set-up: which Node and which system can run it at all, then the steps in order.
// Uses nothing that has to be installed first, and syntax that an old Node still parses, so that an old Node
// is answered with a sentence instead of a stack trace. Runs alone or as the first part of test and demo.

const OLDEST_NODE = '20.19'

if (isOlder(process.versions.node, OLDEST_NODE)) {
  refuse(
    `Node ${OLDEST_NODE} or newer is needed, this is ${process.versions.node}: install it and run this again`,
  )
} else if (process.platform !== 'linux') {
  refuse(`the cage and the peer checks are Linux's own, this is ${process.platform}: run it on Linux`)
} else {
  const { setUp } = await import('./setup/steps.mjs')
  process.exitCode = await setUp()
}

/**
 * Whether one dotted version comes before another, as far as the second goes.
 * @param {string} version
 * @param {string} oldest
 */
function isOlder(version, oldest) {
  const have = version.split('.').map(Number)
  const need = oldest.split('.').map(Number)
  const place = need.findIndex((number, index) => have[index] !== number)
  return place !== -1 && (have[place] ?? 0) < (need[place] ?? 0)
}

/** @param {string} sentence */
function refuse(sentence) {
  process.stderr.write(`setup: ${sentence}\n`)
  process.exitCode = 1
}
