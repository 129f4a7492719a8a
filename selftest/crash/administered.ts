// Owns the rows in which an administrator changes something, or somebody only looks: what was asked, and whether it is
// done once the process is back.
// Must never: count an answer that did not come as done, or as not done; only the store says.
import { randomInt } from 'node:crypto'
import type { Administrator } from '../../client/administrator.js'
import { isBrokerError } from '../../protocol/errors.js'
import { trialAdministrator } from '../trial-grant.js'
import { correctActs, stateActs } from './record-acts.js'
import { announceActs, approveActs } from './approval-acts.js'
import { callActs } from './call-acts.js'
import type { CrashWorld } from './crash-world.js'
import type { CutpointRow } from './cutpoint.js'
import { type Told, toldByError } from './told.js'

const PLACEMENT = { kind: 'bearer_authorization' } as const
const NO_OPERATION = 'f'.repeat(64)

export interface Administered {
  /** Asks. @returns what the administrator was told. */
  ask(): Promise<Told>
  /** Whether it is done, by what the store says. */
  isDone(): Promise<boolean>
  close(): void
}

/** Prepares an administrator's row; what has to stand before is made at once. */
export async function administered(world: CrashWorld, row: CutpointRow): Promise<Administered> {
  const administrator = trialAdministrator(world.trial)
  const acts = await actsOf(world, row, administrator)
  const ask = async (): Promise<Told> => {
    try {
      await acts.ask()
      return { exitCode: 0, outcome: 'completed', code: null, sentence: 'done' }
    } catch (error) {
      return toldByError(error)
    }
  }
  return { ask, isDone: acts.isDone, close: () => administrator.close() }
}

interface Acts {
  readonly ask: () => Promise<unknown>
  readonly isDone: () => Promise<boolean>
}

async function actsOf(world: CrashWorld, row: CutpointRow, by: Administrator): Promise<Acts> {
  // Told once more, a row is about another grant.
  const grantId = `${row.name.replaceAll(/[._]/g, '-')}-${randomInt(2 ** 31)}`
  const grant = { ...world.grant, grantId }
  const found = () => world.session.kernel.call('show_grant', { grantId })
  switch (row.story) {
    case 'issue':
      return { ask: () => by.issue(grant), isDone: () => exists(found) }
    case 'revoke':
      await by.issue(grant)
      return {
        ask: () => by.revokeAtKernel(grantId),
        isDone: async () => (await found()).revoked,
      }
    case 'announce':
    case 'approve': {
      const governed = { ...grant, maximumExecutions: 1, requiredApprovals: 1 }
      await by.issue(governed)
      return row.story === 'announce' ? announceActs(world, governed) : approveActs(world, governed)
    }
    case 'provision': {
      const credential = { credentialId: grantId, provider: world.grant.credential.provider, version: 1 }
      return {
        ask: () => by.provision({ credential, placement: PLACEMENT, secret: Buffer.from('not-a-secret') }),
        isDone: async () =>
          (await by.credentials()).some(({ credential: of }) => of.credentialId === grantId),
      }
    }
    case 'state':
      return stateActs(world, by)
    case 'correct':
      return correctActs(world, by)
    case 'call':
      return callActs(world, row.name, by)
    default:
      return { ask: () => look(world, row.name, by), isDone: () => Promise.resolve(false) }
  }
}

async function exists(find: () => Promise<unknown>): Promise<boolean> {
  try {
    await find()
    return true
  } catch (error) {
    if (isBrokerError(error) && error.code === 'grant_unknown') return false
    throw error
  }
}

/** A reserve that is refused: what stays of it is its receipt. */
function refusedReserve({ caller, kernel }: CrashWorld['session']): Promise<unknown> {
  return kernel.call('reserve', {
    bodyBytes: 0,
    bodySha256: NO_OPERATION,
    callerPublicKey: caller.publicKey,
    grantId: 'grant-of-nobody',
    invocationId: 'invocation-of-nobody',
    proofIssuedAtUnixSeconds: 0,
    proofNonce: 'nonce-of-nobody-at-all',
    requestDigest: NO_OPERATION,
    responseLimitBytes: 1,
    timeoutMs: 1,
  })
}

/** Something is there for the checkpoint to cover. */
async function sealAfterRefusal(session: CrashWorld['session']): Promise<unknown> {
  await refusedReserve(session).catch(() => undefined)
  return session.kernel.call('seal_log', {})
}

function look(world: CrashWorld, name: string, by: Administrator): Promise<unknown> {
  const { session } = world
  const { broker, kernel } = session
  switch (name.split('.')[1]) {
    case 'credential_list':
      return by.credentials()
    case 'slot_status':
      return broker.slotStatus()
    case 'list':
      return kernel.call('list', { limit: 1 })
    case 'approval_list':
      return kernel.call('approval_list', { limit: 1 })
    case 'approval_show':
      return kernel.call('approval_show', { operationId: NO_OPERATION })
    case 'explain':
      return kernel.call('explain', { id: NO_OPERATION })
    case 'show_clock':
      return kernel.call('show_clock', {})
    case 'list_grants':
      return kernel.call('list_grants', { limit: 1 })
    case 'inspect':
      return kernel.call('inspect', { operationId: NO_OPERATION })
    case 'show_receipt':
      return kernel.call('show_receipt', { operationId: NO_OPERATION, receiptId: null })
    case 'read_log':
    case 'read_checkpoints':
      return kernel.call(name.includes('log') ? 'read_log' : 'read_checkpoints', { afterSeq: 0 })
    case 'refusal_recorded':
      return refusedReserve(session)
    case 'seal_log':
    case 'log_sealed':
      return sealAfterRefusal(session)
    default:
      return kernel.call('status', {})
  }
}
