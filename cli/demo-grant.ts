// The administrator's part of the demo: store the token, grant one endpoint to the operator.
import { systemClock } from '../native/clock.js'
import { unixSeconds } from '../protocol/clock.js'
import { destinationFromUrl } from '../protocol/destination.js'
import { GRANT_SCHEMA } from '../protocol/grant.js'
import type { Layout } from '../system/layout.js'
import { asAdministrator } from './administrator.js'
import { issueAs } from './capability.js'
import { provisionAs } from './credential.js'
import { callerKeyOf } from './users.js'

/** Provisions the token as a bearer credential and issues a grant. @returns the grant's id. */
export async function demoGrant(layout: Layout, wanted: { url: string; token: string }): Promise<string> {
  const credential = { credentialId: 'issue-tracker', provider: 'issues.localhost', version: 1 }
  const placement = { kind: 'bearer_authorization' } as const
  const secret = Buffer.from(wanted.token, 'utf8')
  return asAdministrator(layout, async administrator => {
    await provisionAs(administrator, { credential, placement, secret })
    secret.fill(0)
    const now = unixSeconds(systemClock)
    const grant = {
      allowedCallerHeaders: [],
      callerPublicKey: callerKeyOf(layout, process.geteuid?.() ?? 0),
      credential,
      destination: destinationFromUrl(wanted.url, 'POST'),
      expiresAtUnixSeconds: now + 300,
      grantId: 'grant-demo',
      issuedAtUnixSeconds: now,
      maximumBodyBytes: 4_096,
      maximumExecutions: 2,
      maximumResponseBytes: 16_384,
      maximumTimeoutMs: 5_000,
      placement,
      schema: GRANT_SCHEMA,
      tenantScope: administrator.broker.pins.tenantScope,
    } as const
    await issueAs(administrator, grant)
    return grant.grantId
  })
}
