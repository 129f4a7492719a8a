// review-note init: both owners' keys, pins and stores, made once, before anything is authorized.
// Must never: touch a state that stands; a state that was not finished has authorized nothing and may be removed.
// Source: `review-note init`: a root grant for one hour, a ledger of four operations.
import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { ExecutorLedger } from '../../executor/index.js'
import { provisionKernel } from '../../kernel/index.js'
import { bootIdentity, systemClock } from '../../native/clock.js'
import { CallerExecutor } from '../../protocol/caller-authorization.js'
import { CapabilityToken, signCapabilityToken } from '../../protocol/capability-token.js'
import { unixSeconds } from '../../protocol/clock.js'
import { BrokerError } from '../../protocol/errors.js'
import type { PublicKey, SigningKey } from '../../protocol/keys.js'
import type { Cutpoint } from '../../system/cutpoints.js'
import { makeKeyFile } from '../../system/key-file.js'
import { retainFile, syncFolder } from '../../system/retained-file.js'
import { actIn } from './act.js'
import { withHostKernel } from './host-kernel.js'
import { type Place, placeOf, SERVER_ID, TOOL_NAME } from './place.js'
import { Retainer } from './retained.js'

const LEDGER_CAPACITY = 4
const GRANT_SECONDS = 3_600
const EXECUTOR_ID = 'review-note-executor'
const KEY_EPOCH = 1
const PRIVATE_FOLDER = 0o700
const PRIVATE_FILE = 0o600

export interface Initialised {
  readonly executor: CallerExecutor
  readonly grant: CapabilityToken
  readonly kernelKey: PublicKey
  readonly state: string
}

/** @param invocations how many appends the root grant permits. @throws BrokerError `installation_exists`. */
export async function initialise(
  state: string,
  invocations: number,
  atCutpoint: Cutpoint,
): Promise<Initialised> {
  const place = placeOf(resolve(state))
  makeFolders(place)
  const keys = makeKeys(place)
  try {
    const executor = { executor_id: EXECUTOR_ID, key_epoch: KEY_EPOCH, public_key: keys.executor.publicKey }
    const retain = new Retainer(atCutpoint)
    await retainFile(place.host.kernelPublicKey, Buffer.from(`${keys.kernel.publicKey}\n`), PRIVATE_FILE)
    await retain.once(place.executorPin, CallerExecutor, executor)
    await provisionKernel({ stateDirectory: place.host.directory }, systemClock)
    const terms = { capacity: LEDGER_CAPACITY, executor, key: keys.executor }
    await ExecutorLedger.provision(place.ledger, terms, { bootId: bootIdentity(), clock: systemClock })
    const grant = rootGrant(keys, invocations)
    await retain.once(place.host.grant, CapabilityToken, grant)
    for (const folder of [place.host.directory, place.state, dirname(place.state)]) await syncFolder(folder)
    // A state that the kernel cannot serve is found here, not at the first request.
    await withHostKernel(actIn(place.state, atCutpoint), async () => undefined)
    return { executor, grant, kernelKey: keys.kernel.publicKey, state: place.state }
  } finally {
    for (const name of ['caller', 'executor', 'issuer', 'kernel'] as const) keys[name].wipe()
  }
}

function makeFolders(place: Place): void {
  try {
    mkdirSync(place.state, { mode: PRIVATE_FOLDER })
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw cause
    throw new BrokerError(
      'installation_exists',
      `init refused: expected no ${place.state}, got one; use it, or name another with --state`,
      { cause },
    )
  }
  const { executorKey, host, journal, requests } = place
  const inner = [host.directory, dirname(host.callerKey), dirname(executorKey), dirname(journal), requests]
  for (const folder of inner) mkdirSync(folder, { mode: PRIVATE_FOLDER })
}

interface OwnKeys {
  readonly caller: SigningKey
  readonly executor: SigningKey
  readonly issuer: SigningKey
  readonly kernel: SigningKey
}

function makeKeys({ executorKey, host }: Place): OwnKeys {
  makeKeyFile(host.keyFiles.storage).wipe()
  makeKeyFile(host.keyFiles.authority).wipe()
  return {
    caller: makeKeyFile(host.callerKey),
    executor: makeKeyFile(executorKey),
    issuer: makeKeyFile(host.keyFiles.issuer),
    kernel: makeKeyFile(host.keyFiles.kernel),
  }
}

/** Signed once by the host's own issuer. A larger grant makes no more room in the ledger. */
function rootGrant({ caller, issuer }: OwnKeys, invocations: number): CapabilityToken {
  const now = unixSeconds(systemClock)
  return signCapabilityToken(
    {
      expires_at: now + GRANT_SECONDS,
      id: `review-note-grant-${randomBytes(16).toString('hex')}`,
      issued_at: now,
      issuer: issuer.publicKey,
      scope: {
        grants: [
          {
            max_invocations: invocations,
            operations: ['invoke'],
            server_id: SERVER_ID,
            tool_name: TOOL_NAME,
          },
        ],
      },
      subject: caller.publicKey,
    },
    issuer,
  )
}
