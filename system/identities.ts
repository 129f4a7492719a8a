// The uids of an installation: one for each process that must not reach another's keys. They are written
// once by `init` and read by whatever starts the processes.
import { BrokerError, isBrokerError } from '../protocol/errors.js'
import { parseConfigurationJson } from '../protocol/json.js'
import { exactly, nullable, readShape, whole, word } from '../protocol/shape.js'
import { readAdministratorsFile } from './administrators-file.js'

export const IDENTITIES_SCHEMA = 'chio.installation.v1'

/** Said wherever the one-uid layout is met. */
export const SINGLE_USER_SENTENCE =
  'Single-user layout: it protects against the caged tool only, not against other processes of this user.'

/** A process's uid and its own primary group. */
export interface Identity {
  readonly uid: number
  readonly gid: number
}

/** Who runs what. `cage` is null where the operator's own uid is in the cage (no root to change it). */
export interface Identities {
  readonly broker: Identity
  readonly kernel: Identity
  readonly cage: Identity | null
}

const id = whole(0, 0xffff_fffe)
const identity = exactly({ uid: id, gid: id })
const schema = exactly({
  schema: word(IDENTITIES_SCHEMA),
  broker: identity,
  kernel: identity,
  cage: nullable(identity),
})

/** Whether broker and kernel are apart from each other; false is the single-user layout. */
export function areSeparate(identities: Identities): boolean {
  return identities.broker.uid !== identities.kernel.uid
}

export function encodeIdentities({ broker, kernel, cage }: Identities): Uint8Array {
  const numbers = ({ uid, gid }: Identity): Identity => ({ uid, gid })
  const document = {
    schema: IDENTITIES_SCHEMA,
    broker: numbers(broker),
    kernel: numbers(kernel),
    cage: cage === null ? null : numbers(cage),
  }
  return Buffer.from(`${JSON.stringify(document, null, 2)}\n`, 'utf8')
}

/** @throws BrokerError `installation_missing`, or `invalid_configuration`. */
export function readIdentities(path: string): Identities {
  let bytes: Uint8Array
  try {
    bytes = readAdministratorsFile(path)
  } catch (cause) {
    if (isBrokerError(cause)) throw cause
    throw new BrokerError(
      'installation_missing',
      `installation refused: expected ${path}, got ${(cause as NodeJS.ErrnoException).code ?? 'a fault'}`,
      {
        cause,
      },
    )
  }
  const read = readShape(schema, parseConfigurationJson(bytes, 'identities'))
  if ('faults' in read) {
    throw new BrokerError(
      'invalid_configuration',
      `${path} refused: expected the file that chio init wrote, got one of another form`,
    )
  }
  const { broker, kernel, cage } = read.value
  return { broker, kernel, cage }
}
