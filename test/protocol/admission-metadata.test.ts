// The admission part of a receipt, held against the published schema: its members, and the two states more.
import { describe, expect, test } from 'vitest'
import { ADMISSION_RECEIPT_SCHEMA, AdmissionReceiptMetadata } from '../../protocol/admission-metadata.js'
import { ADMISSION_STATES } from '../../protocol/admission-states.js'
import { decode, encode } from '../../protocol/codec.js'
import { describeVectors, readVectors } from '../support/vectors.js'
import { codeOf } from '../support/descriptors.js'

const digest = 'ab'.repeat(32)
const fence = { lease_id: 'lease', owner_epoch: 1, store_uuid: 'store' }
const metadata: AdmissionReceiptMetadata = {
  compensation_status: 'not_compensated',
  coordinator_lease_epoch: 1,
  coordinator_lease_id: 'lease',
  operation_id: digest,
  projected_dispatch_state: 'committed',
  projected_operation_version: 6,
  projected_state: 'awaiting_caller_report',
  request_binding_hash: digest,
  request_id: 'request',
  request_namespace_digest: digest,
  retained_dispatch_commit: {
    committed_version: 6,
    coordinator_lease_epoch: 1,
    coordinator_lease_id: 'lease',
    provider_attempt: {
      attempt_id: 'attempt',
      operation_id: digest,
      transport_id: 'chio-broker',
      transport_key_epoch: 1,
    },
    store_fence: fence,
  },
  schema: ADMISSION_RECEIPT_SCHEMA,
  store_fence: fence,
  tool_outcome_id: null,
  tool_outcome_version: null,
  trusted_time_unix_ms: 1,
}

interface Schema {
  readonly required: string[]
  readonly properties: Readonly<Record<string, { readonly enum?: string[] }>>
  readonly $defs: Readonly<Record<string, { readonly required?: string[] }>>
}

describe('the admission part of a receipt', () => {
  test('is read back, and refused with an epoch of 0', async () => {
    const bytes = encode(AdmissionReceiptMetadata, metadata)
    expect(decode(AdmissionReceiptMetadata, bytes, 'metadata')).toEqual(metadata)
    const spoiled = Buffer.from(
      Buffer.from(bytes).toString().replace('"transport_key_epoch":1', '"transport_key_epoch":0'),
    )
    expect(await codeOf(() => decode(AdmissionReceiptMetadata, spoiled, 'metadata'))).toBe('invalid_request')
  })
})

describeVectors('the schema of the admission part', folder => {
  const { $defs, properties, required } = readVectors<Schema>(
    folder,
    'chio/schemas/chio-wire/v1/receipt/admission-metadata.schema.json',
  )
  const commit = metadata.retained_dispatch_commit

  test('asks for exactly our members, at every level', () => {
    expect(Object.keys(metadata).sort()).toEqual([...required].sort())
    expect(Object.keys(commit ?? {}).sort()).toEqual([...($defs['dispatchCommit']?.required ?? [])].sort())
    const attempt = Object.keys(commit?.provider_attempt ?? {}).sort()
    expect(attempt).toEqual([...($defs['providerAttempt']?.required ?? [])].sort())
    expect(Object.keys(fence).sort()).toEqual([...($defs['storeFence']?.required ?? [])].sort())
  })

  test('knows our states but the two that came later', () => {
    const known = properties['projected_state']?.enum ?? []
    const added = ADMISSION_STATES.filter(state => !known.includes(state))
    expect(added).toEqual(['awaiting_caller_report', 'denied_after_delivery'])
    expect(known.filter(state => !(ADMISSION_STATES as readonly string[]).includes(state))).toEqual([])
  })
})
