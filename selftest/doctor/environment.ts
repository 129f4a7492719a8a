// What this shell would pass on: variables and options that change the code, the trust anchors or the peers of a
// Node process. A warning only: what starts our daemons passes an environment of its own, and a daemon refuses.
import { hostileVariables } from '../../system/environment.js'
import { type Check, ok, weaker } from './check.js'

const NAME = 'environment'

/** @param environment names count, values are never shown. */
export function judgeEnvironment(environment: NodeJS.ProcessEnv): Check {
  const names = hostileVariables(environment)
  if (names.length === 0) return ok(NAME, 'nothing in this shell that would lead a daemon astray')
  const found = `this shell sets ${names.join(', ')}: a daemon started from it by hand refuses to start`
  return weaker(NAME, found, `unset ${names.join(' ')}`)
}
