// What an administrator may do in the kernel, and by what: a signature over the whole request, consumed once.
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { signAdminRequest } from '../../protocol/administration.js'
import { encode } from '../../protocol/codec.js'
import { Grant } from '../../protocol/grant.js'
import { GrantReference } from '../../protocol/kernel-rpc.js'
import { signingKey } from '../../protocol/keys.js'
import { HeldClock } from '../support/clock.js'
import {
  approve,
  grantFor,
  issueGrant,
  makeTestKernel,
  revokeGrant,
  seed,
  TENANT,
  type TestKernel,
} from '../support/kernel.js'

let clock: HeldClock
let kernel: TestKernel
beforeEach(async () => {
  clock = new HeldClock(Date.now())
  kernel = await makeTestKernel({ clock })
})
afterEach(() => kernel.remove())

const issue = (grant: Grant, authorization: ReturnType<typeof approve> | null) =>
  kernel.client.call('issue_grant', grant, authorization)
const signed = (grant: Grant) => approve(kernel, 'issue_grant', encode(Grant, grant), clock)

function statement(given = {}) {
  const issuedAtUnixSeconds = Math.floor(clock.unixMs() / 1_000)
  return {
    issuedAtUnixSeconds,
    lifetimeSeconds: 60,
    requestId: 'request-1',
    subject: 'administrator',
    ...given,
  }
}

describe('a grant is issued', () => {
  test('under an administrator’s signature over exactly this grant', async () => {
    const grant = grantFor(kernel, {}, clock)
    expect(await issue(grant, signed(grant))).toMatchObject({ grantId: grant.grantId })
    expect(await kernel.client.call('show_grant', { grantId: grant.grantId })).toEqual({
      executions: 0,
      grant,
      held: 0,
      revoked: false,
    })
  })

  test.each([
    ['no authorization', () => null],
    ['a signature over another grant', () => signed(grantFor(kernel, {}, clock))],
    [
      'a signature for another operation',
      (grant: Grant) => approve(kernel, 'revoke_grant', encode(Grant, grant), clock),
    ],
    [
      'another key',
      (grant: Grant) =>
        approve({ administrator: signingKey(seed()) }, 'issue_grant', encode(Grant, grant), clock),
    ],
    [
      'another tenant',
      (grant: Grant) =>
        signAdminRequest(
          { operation: 'issue_grant', payload: encode(Grant, grant), tenantScope: 'other' },
          statement(),
          kernel.administrator,
        ),
    ],
    [
      'another subject',
      (grant: Grant) =>
        signAdminRequest(
          { operation: 'issue_grant', payload: encode(Grant, grant), tenantScope: TENANT },
          statement({ subject: 'somebody' }),
          kernel.administrator,
        ),
    ],
    [
      'a token that lives too long',
      (grant: Grant) =>
        signAdminRequest(
          { operation: 'issue_grant', payload: encode(Grant, grant), tenantScope: TENANT },
          statement({ lifetimeSeconds: 601 }),
          kernel.administrator,
        ),
    ],
    [
      'a token that has expired',
      (grant: Grant) =>
        signAdminRequest(
          { operation: 'issue_grant', payload: encode(Grant, grant), tenantScope: TENANT },
          statement({ issuedAtUnixSeconds: Math.floor(clock.unixMs() / 1_000) - 60 }),
          kernel.administrator,
        ),
    ],
  ])('not with %s', async (_what, authorize) => {
    const grant = grantFor(kernel, {}, clock)
    await expect(issue(grant, authorize(grant))).rejects.toMatchObject({ code: 'authorization_denied' })
    await expect(kernel.client.call('show_grant', { grantId: grant.grantId })).rejects.toMatchObject({
      code: 'grant_unknown',
    })
  })

  test.each([
    ['of another tenant', { tenantScope: 'other' }],
    [
      'with a caller header that the placement owns',
      { allowedCallerHeaders: ['x-api-key'], placement: { kind: 'api_key_header' } },
    ],
    ['with an id of other letters', { grantId: 'Grant_1' }],
    ['that has expired', { expiresAtUnixSeconds: 2, issuedAtUnixSeconds: 1 }],
  ] as const)('not when it is a grant %s', async (_what, given) => {
    const grant = grantFor(kernel, given, clock)
    await expect(issue(grant, signed(grant))).rejects.toMatchObject({ code: 'invalid_request' })
  })

  test('once: the exact retry gets the first answer, even after its approval has expired and a restart', async () => {
    const grant = grantFor(kernel, {}, clock)
    const authorization = signed(grant)
    const first = await issue(grant, authorization)
    clock.pass(120_000)
    await kernel.restart({ clock })
    expect(await issue(grant, authorization)).toEqual(first)
  })

  test('not twice under one id by two approvals', async () => {
    const grant = grantFor(kernel, {}, clock)
    await issue(grant, signed(grant))
    await expect(issue(grant, signed(grant))).rejects.toMatchObject({ code: 'conflict' })
  })

  test('and consumed approvals serve no other request, even one signed under the same approval id', async () => {
    const grants = [grantFor(kernel, {}, clock), grantFor(kernel, {}, clock)] as const
    const [first, second] = grants.map(grant =>
      signAdminRequest(
        { operation: 'issue_grant', payload: encode(Grant, grant), tenantScope: TENANT },
        statement(),
        kernel.administrator,
      ),
    ) as [ReturnType<typeof approve>, ReturnType<typeof approve>]
    await issue(grants[0], first)
    await expect(issue(grants[1], first)).rejects.toMatchObject({ code: 'conflict' })
    await expect(issue(grants[1], second)).rejects.toMatchObject({ code: 'conflict' })
  })
})

describe('a grant is revoked', () => {
  test('at once and for good, and repeating it is safe', async () => {
    const grant = await issueGrant(kernel, {}, clock)
    expect((await revokeGrant(kernel, grant.grantId, clock)).newlyRevoked).toBe(true)
    expect((await revokeGrant(kernel, grant.grantId, clock)).newlyRevoked).toBe(false)
    expect((await kernel.client.call('show_grant', { grantId: grant.grantId })).revoked).toBe(true)
  })

  test('not without a signature, and not when nobody issued it', async () => {
    const grant = await issueGrant(kernel, {}, clock)
    await expect(kernel.client.call('revoke_grant', { grantId: grant.grantId })).rejects.toMatchObject({
      code: 'authorization_denied',
    })
    const payload = encode(GrantReference, { grantId: 'grant-of-nobody' })
    const authorization = approve(kernel, 'revoke_grant', payload, clock)
    await expect(
      kernel.client.call('revoke_grant', { grantId: 'grant-of-nobody' }, authorization),
    ).rejects.toMatchObject({ code: 'grant_unknown' })
  })
})

test('an authorization on an operation that needs none is refused', async () => {
  const authorization = approve(kernel, 'status', Buffer.from('{}'), clock)
  await expect(kernel.client.call('status', {}, authorization)).rejects.toMatchObject({
    code: 'invalid_request',
  })
})
