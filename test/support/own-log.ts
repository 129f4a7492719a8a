// Owns one document of every kind that a kernel's log has: a receipt with all its parts, checkpoints, proofs and the
// manifest of an export. Must never hold a real secret.
import { ADMISSION_RECEIPT_SCHEMA, type AdmissionReceiptMetadata } from '../../protocol/admission-metadata.js'
import { chainLeafHash, logIdOf } from '../../protocol/checkpoint.js'
import { sha256Hex } from '../../protocol/digest.js'
import {
  CHECKPOINTS_FILE,
  EXPORT_MANIFEST_SCHEMA,
  type ExportManifest,
  RECEIPTS_FILE,
} from '../../protocol/export-manifest.js'
import { receiptEntry, signKernelReceipt } from '../../protocol/kernel-receipt.js'
import { proveConsistency, proveInclusion } from '../../protocol/log-proof.js'
import { leafHash } from '../../protocol/merkle.js'
import { checkpointsOver, LOG_KEY, receiptBody, receiptsOf } from './kernel-receipts.js'
import { NOW, OPERATION_ID, utf8 } from './own-request.js'

const fence = { lease_id: 'lease-own', owner_epoch: 1, store_uuid: 'store-own' }

export const admissionMetadata: AdmissionReceiptMetadata = {
  compensation_status: 'not_compensated',
  coordinator_lease_epoch: 1,
  coordinator_lease_id: 'lease-own',
  operation_id: OPERATION_ID,
  projected_dispatch_state: 'committed',
  projected_operation_version: 6,
  projected_state: 'awaiting_caller_report',
  request_binding_hash: sha256Hex(utf8('binding')),
  request_id: 'invocation-own',
  request_namespace_digest: sha256Hex(utf8('namespace')),
  retained_dispatch_commit: {
    committed_version: 6,
    coordinator_lease_epoch: 1,
    coordinator_lease_id: 'lease-own',
    provider_attempt: {
      attempt_id: 'attempt-own',
      operation_id: OPERATION_ID,
      transport_id: 'chio-broker',
      transport_key_epoch: 1,
    },
    store_fence: fence,
  },
  schema: ADMISSION_RECEIPT_SCHEMA,
  store_fence: fence,
  tool_outcome_id: null,
  tool_outcome_version: null,
  trusted_time_unix_ms: NOW * 1_000,
}

export const kernelReceipt = signKernelReceipt(
  receiptBody({
    decision: { guard: 'kernel', reason: 'grant refused', verdict: 'deny' },
    evidence: [{ details: 'no credential form', guard_name: 'secret-scan', verdict: true }],
    metadata: { admission: { ...admissionMetadata } },
  }),
  LOG_KEY,
  'rcpt-own',
)

const receipts = receiptsOf(6)
const leaves = receipts.map(receipt => leafHash(receiptEntry(receipt)))
const [first, second] = checkpointsOver(receipts, 3) as [never, ReturnType<typeof checkpointsOver>[number]]
const chain = [first, second].map(({ body }: typeof second) => chainLeafHash(body))

export const checkpoint = second
export const inclusionProof = proveInclusion(second, leaves.slice(3), 5)
export const consistencyProof = proveConsistency(first, second, chain)
export const exportManifest: ExportManifest = {
  counts: { checkpoints: 2, receipts: 6 },
  exportedAtUnixMs: NOW * 1_000,
  files: [RECEIPTS_FILE, CHECKPOINTS_FILE].map(path => ({ bytes: 3, path, sha256: sha256Hex(utf8(path)) })),
  kernelKey: LOG_KEY.publicKey,
  logId: logIdOf(LOG_KEY.publicKey),
  proofCoverage: { covered: 6, uncovered: 0 },
  schema: EXPORT_MANIFEST_SCHEMA,
}
