// Owns one whole installation for measuring: provider, both daemons as processes under uids of their own, one
// credential, one grant that outlives the run, and a host session. Leaves nothing behind.
import type { HostSession } from '../host/session.js'
import { systemClock } from '../native/clock.js'
import { unixSeconds } from '../protocol/clock.js'
import { destinationFromUrl } from '../protocol/destination.js'
import { GRANT_SCHEMA, type Grant } from '../protocol/grant.js'
import { startTrial, type Trial } from '../selftest/trial.js'
import { trialAdministrator } from '../selftest/trial-grant.js'
import { localProviderOf, PROVIDER_HOST, providerUrl } from './provider-address.js'
import { Provider } from './provider.js'

const CREDENTIAL = { credentialId: 'issue-tracker', provider: PROVIDER_HOST, version: 1 }
const PLACEMENT = { kind: 'bearer_authorization' } as const
const GRANT_LIFETIME_SECONDS = 86_400
const GRANT_EXECUTIONS = 10_000_000
const GRANT_TIMEOUT_MS = 10_000

export interface Installation {
  readonly provider: Provider
  readonly trial: Trial
  readonly session: HostSession
  readonly grant: Grant
  close(): Promise<void>
}

export async function openInstallation(): Promise<Installation> {
  const provider = await Provider.start()
  try {
    return await installFor(provider)
  } catch (error) {
    await provider.stop()
    throw error
  }
}

async function installFor(provider: Provider): Promise<Installation> {
  const trial = await startTrial({ localProviders: [localProviderOf(provider)] })
  try {
    const grant = await grantFor(trial, provider)
    const session = trial.openHost()
    const close = async (): Promise<void> => {
      session.close()
      await trial.stop()
      await provider.stop()
    }
    return { provider, trial, session, grant, close }
  } catch (error) {
    await trial.stop()
    throw error
  }
}

async function grantFor(trial: Trial, provider: Provider): Promise<Grant> {
  const administrator = trialAdministrator(trial)
  const secret = Buffer.from(provider.token, 'utf8')
  try {
    await administrator.provision({ credential: CREDENTIAL, placement: PLACEMENT, secret })
    const grant = benchGrant(trial, provider, administrator.tenantScope)
    await administrator.issue(grant)
    return grant
  } finally {
    secret.fill(0)
    administrator.close()
  }
}

function benchGrant(trial: Trial, provider: Provider, tenantScope: string): Grant {
  const now = unixSeconds(systemClock)
  return {
    allowedCallerHeaders: [],
    callerPublicKey: [...trial.keys.callers.values()][0] as string,
    credential: CREDENTIAL,
    destination: destinationFromUrl(providerUrl(provider), 'POST'),
    expiresAtUnixSeconds: now + GRANT_LIFETIME_SECONDS,
    grantId: 'grant-bench',
    issuedAtUnixSeconds: now,
    maximumBodyBytes: 4_096,
    maximumExecutions: GRANT_EXECUTIONS,
    maximumResponseBytes: 16_384,
    maximumTimeoutMs: GRANT_TIMEOUT_MS,
    placement: PLACEMENT,
    requiredApprovals: 0,
    schema: GRANT_SCHEMA,
    tenantScope,
  }
}
