// The administrator's part of a trial: store the token, grant one endpoint to the operator.
import { readFileSync } from 'node:fs'
import { Administrator } from '../client/administrator.js'
import { parseHostPins } from '../host/pins.js'
import { systemClock } from '../native/clock.js'
import { unixSeconds } from '../protocol/clock.js'
import { destinationFromUrl } from '../protocol/destination.js'
import { GRANT_SCHEMA, type Grant } from '../protocol/grant.js'
import { signingKey } from '../protocol/keys.js'
import { ADMINISTRATOR_SUBJECT } from '../system/configuration.js'
import { readKey } from '../system/key-file.js'
import type { Trial } from './trial.js'

const CREDENTIAL = { credentialId: 'issue-tracker', provider: 'issues.localhost', version: 1 }
const PLACEMENT = { kind: 'bearer_authorization' } as const

/** What a trial's grant allows; the rest is small and fixed. */
export interface TrialGrant {
  readonly url: string
  readonly maximumExecutions: number
  readonly grantId?: string
  readonly lifetimeSeconds?: number
  readonly requiredApprovals?: number
}

const GRANT_LIFETIME_SECONDS = 300

/** Opens the administrator of a trial. */
export function trialAdministrator(trial: Pick<Trial, 'layout'>): Administrator {
  const { broker, kernel } = parseHostPins(readFileSync(trial.layout.pins))
  const key = signingKey(readKey({ file: trial.layout.adminKey }, 'admin key'))
  return new Administrator({ broker, kernel, key, subject: ADMINISTRATOR_SUBJECT, clock: systemClock })
}

/** Provisions the token as a bearer credential and issues a grant for it. */
export async function grantTrial(trial: Trial, wanted: TrialGrant & { token: string }): Promise<Grant> {
  const administrator = trialAdministrator(trial)
  const secret = Buffer.from(wanted.token, 'utf8')
  try {
    await administrator.provision({ credential: CREDENTIAL, placement: PLACEMENT, secret })
    return await issueWith(administrator, trial, wanted)
  } finally {
    secret.fill(0)
    administrator.close()
  }
}

/** Issues one more grant for the credential that stands already. */
export async function issueTrialGrant(trial: Trial, wanted: TrialGrant): Promise<Grant> {
  const administrator = trialAdministrator(trial)
  try {
    return await issueWith(administrator, trial, wanted)
  } finally {
    administrator.close()
  }
}

async function issueWith(administrator: Administrator, trial: Trial, wanted: TrialGrant): Promise<Grant> {
  const grant = trialGrant(trial, wanted, administrator.tenantScope)
  await administrator.issue(grant)
  return grant
}

function trialGrant(trial: Trial, wanted: TrialGrant, tenantScope: string): Grant {
  const now = unixSeconds(systemClock)
  return {
    allowedCallerHeaders: [],
    callerPublicKey: [...trial.keys.callers.values()][0] as string,
    credential: CREDENTIAL,
    destination: destinationFromUrl(wanted.url, 'POST'),
    expiresAtUnixSeconds: now + (wanted.lifetimeSeconds ?? GRANT_LIFETIME_SECONDS),
    grantId: wanted.grantId ?? 'grant-trial',
    issuedAtUnixSeconds: now,
    maximumBodyBytes: 4_096,
    maximumExecutions: wanted.maximumExecutions,
    maximumResponseBytes: 16_384,
    maximumTimeoutMs: 5_000,
    placement: PLACEMENT,
    requiredApprovals: wanted.requiredApprovals ?? 0,
    schema: GRANT_SCHEMA,
    tenantScope,
  }
}
