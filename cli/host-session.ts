// Opens the calling user as a host of an installation: pins, caller key, journal key.
import { lstatSync } from 'node:fs'
import { parseHostPins } from '../host/pins.js'
import { type HostSession, openHost } from '../host/session.js'
import { systemClock } from '../native/clock.js'
import { BrokerError, isBrokerError } from '../protocol/errors.js'
import { signingKey } from '../protocol/keys.js'
import { readAdministratorsFile } from '../system/administrators-file.js'
import { readKey } from '../system/key-file.js'
import { hostLayout, type Layout } from '../system/layout.js'
import { assertOwnSockets } from '../system/own-state.js'

/** Reads the pins of an installation. @throws BrokerError `installation_missing`, `invalid_configuration` or `state_elsewhere`. */
export function readPins(layout: Layout) {
  let bytes: Uint8Array
  try {
    bytes = readAdministratorsFile(layout.pins)
  } catch (cause) {
    if (isBrokerError(cause)) throw cause
    if ((cause as NodeJS.ErrnoException).code === 'EACCES') throw noClient(cause)
    throw new BrokerError(
      'installation_missing',
      `installation refused: expected one at ${layout.state}, got ${(cause as NodeJS.ErrnoException).code ?? 'a fault'} for its pins.json`,
      { cause },
    )
  }
  const pins = parseHostPins(bytes)
  assertOwnSockets('pins.json', layout.state, [pins.broker.socketPath, pins.kernel.socketPath])
  return pins
}

/** Opens the calling user as a host. @throws BrokerError `authorization_denied` for a user that `init` did not name. */
export function openHostSession(layout: Layout): HostSession {
  const pins = readPins(layout)
  const host = hostLayout(layout.state, effectiveUid())
  if (lstatSync(host.directory, { throwIfNoEntry: false }) === undefined) throw noClient()
  const seed = readKey({ file: host.callerKey }, 'caller key')
  const caller = signingKey(seed)
  seed.fill(0)
  const journalKey = readKey({ file: host.journalKey }, 'journal key')
  return openHost({ pins, caller, journalKey, runsDirectory: host.runs, clock: systemClock })
}

/** Clients are named when an installation is made; each has a folder with its keys. */
function noClient(cause?: unknown): BrokerError {
  return new BrokerError(
    'authorization_denied',
    `host refused: uid ${effectiveUid()} is no client of this installation: chio init --client USER names clients when one is made`,
    { cause },
  )
}

function effectiveUid(): number {
  return process.geteuid?.() ?? 0
}
