// Authorization and report of caller delivery against the shared vectors and the published schemas.
import { expect, test } from 'vitest'
import {
  type CallerAuthorization,
  type CallerPins,
  claimableAt,
  signCallerAuthorization,
  verifyHistorical,
} from '../../protocol/caller-authorization.js'
import { type CallerReportBody, signCallerReport, verifyCallerReport } from '../../protocol/caller-report.js'
import { fromHex } from '../../protocol/digest.js'
import type { JsonValue } from '../../protocol/json.js'
import { admitPublicKey, signingKey } from '../../protocol/keys.js'
import { checkOf } from '../support/caller-checks.js'
import { ownAuthorization, ownReport } from '../support/own-caller.js'
import { describeVectors, readVectors } from '../support/vectors.js'

interface CallerVector {
  readonly seeds: { readonly executor: string; readonly kernel: string }
  readonly authorization: CallerAuthorization
  readonly authorization_canonical_bytes: number
  readonly authorization_canonical_sha256: string
  readonly claim_live_at: readonly number[]
  readonly report: { readonly report: CallerReportBody; readonly signature: string }
  readonly report_canonical_sha256: string
}

describeVectors('derived caller delivery', folder => {
  const vector = readVectors<CallerVector>(folder, 'derived/caller-delivery.json')
  const kernelKey = signingKey(fromHex(vector.seeds.kernel))
  const executorKey = signingKey(fromHex(vector.seeds.executor))
  const { authorization: signedBody } = vector.authorization
  const own: CallerPins = {
    executor: signedBody.executor,
    invocation: signedBody.invocation,
    kernelKey: admitPublicKey(signedBody.kernel_public_key, 'kernel'),
  }

  test('authorization has its bytes, its digest, its signature and its interval', () => {
    const verified = verifyHistorical(vector.authorization, own)
    expect(verified.bytes).toHaveLength(vector.authorization_canonical_bytes)
    expect(verified.digest).toBe(vector.authorization_canonical_sha256)
    expect(signCallerAuthorization(signedBody, kernelKey)).toEqual(vector.authorization)
    const live = vector.claim_live_at.map(now => checkOf(() => claimableAt(verified, now)))
    expect(live).toEqual(['none', 'none'])
    expect([999, 2_000].map(now => checkOf(() => claimableAt(verified, now)))).toEqual(['expired', 'expired'])
  })

  test('report has its digest and its signature', () => {
    const verified = verifyCallerReport(vector.report, verifyHistorical(vector.authorization, own))
    expect(verified.digest).toBe(vector.report_canonical_sha256)
    expect(signCallerReport(vector.report.report, executorKey)).toEqual(vector.report)
  })
})

interface Schema {
  readonly [keyword: string]: JsonValue
}

describeVectors('published schemas of caller delivery', folder => {
  const at = 'chio/schemas/chio-wire/v1/kernel'
  const schemas = {
    authorization: readVectors<Schema>(folder, `${at}/caller_dispatch_authorization.schema.json`),
    report: readVectors<Schema>(folder, `${at}/caller_delivery_report.schema.json`),
  }
  const membersOf = (schema: JsonValue | undefined, ...path: readonly string[]): string[] => {
    let found = schema as Schema
    for (const name of path) found = (found['properties'] as Schema)[name] as Schema
    expect(found).toMatchObject({ additionalProperties: false })
    return [...(found['required'] as string[])].sort()
  }

  test('require exactly our members', () => {
    const { authorization, report } = schemas
    const signed = ownAuthorization.authorization
    const commit = ['authorization', 'committed', 'dispatch_commit']
    expect(membersOf(authorization)).toEqual(Object.keys(ownAuthorization).sort())
    expect(membersOf(authorization, 'authorization')).toEqual(Object.keys(signed).sort())
    expect(membersOf(authorization, 'authorization', 'invocation')).toEqual(
      Object.keys(signed.invocation).sort(),
    )
    expect(membersOf(authorization, 'authorization', 'committed')).toEqual(
      Object.keys(signed.committed).sort(),
    )
    expect(membersOf(authorization, ...commit)).toEqual(Object.keys(signed.committed.dispatch_commit).sort())
    expect(membersOf(authorization, ...commit, 'provider_attempt')).toEqual(
      Object.keys(signed.committed.dispatch_commit.provider_attempt).sort(),
    )
    expect(membersOf(report)).toEqual(Object.keys(ownReport).sort())
    expect(membersOf(report, 'report')).toEqual(Object.keys(ownReport.report).sort())
  })

  test('name our words', () => {
    const constOf = (schema: Schema, name: string) =>
      JSON.stringify(schema).includes(`"schema":{"const":"${name}"}`)
    expect(constOf(schemas.authorization, ownAuthorization.authorization.schema)).toBe(true)
    expect(constOf(schemas.report, ownReport.report.schema)).toBe(true)
  })
})

