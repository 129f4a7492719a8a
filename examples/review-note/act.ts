// Owns what every command works with: where the state is, the clock, and the moments at which a crash test ends it.
// Must never: make a state: `init` alone does.
import { existsSync, realpathSync } from 'node:fs'
import { resolve } from 'node:path'
import { systemClock } from '../../native/clock.js'
import type { Clock } from '../../protocol/clock.js'
import { BrokerError } from '../../protocol/errors.js'
import type { Cutpoint } from '../../system/cutpoints.js'
import { type Place, placeOf } from './place.js'
import { Retainer } from './retained.js'

export interface Act {
  readonly atCutpoint: Cutpoint
  readonly clock: Clock
  readonly place: Place
  readonly retain: Retainer
}

/** @throws BrokerError `invalid_request` where `init` has not ended. */
export function actIn(state: string, atCutpoint: Cutpoint): Act {
  const path = resolve(state)
  if (!existsSync(placeOf(path).host.grant)) {
    throw new BrokerError(
      'invalid_request',
      `--state refused: expected what review-note init makes, got ${path} without it; run init, once`,
    )
  }
  return {
    atCutpoint,
    clock: systemClock,
    place: placeOf(realpathSync(path)),
    retain: new Retainer(atCutpoint),
  }
}
