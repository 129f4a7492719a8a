// Owns the seed documents of the kernel's log: what is asked of it and how it answers.
// Must never: hold a real secret.
import type { JsonValue } from '../../protocol/json.js'

const DIGEST = 'd'.repeat(64)

type Named = readonly [kind: string, document: JsonValue]
type Document = { readonly [member: string]: JsonValue }

export function logRequests(): Named[] {
  return [
    ['read_log', { afterSeq: 0 }],
    ['read_checkpoints', { afterSeq: 1 }],
    ['seal_log', {}],
    ['show_receipt', { operationId: DIGEST, receiptId: null }],
    ['show_receipt', { operationId: null, receiptId: DIGEST }],
  ]
}

/** @param of the frozen document of a name. */
export function logResults(of: (name: string) => Document): Named[] {
  const [checkpoint, proof, receipt] = [of('checkpoint'), of('inclusion-proof'), of('kernel-receipt')]
  return [
    ['read_log', { receipts: [receipt] }],
    ['read_checkpoints', { checkpoints: [checkpoint] }],
    ['seal_log', { checkpoints: 2, entries: 6 }],
    ['show_receipt', { entrySeq: 5, inclusion: { checkpoint, proof }, receipt }],
    ['show_receipt', { entrySeq: 6, inclusion: null, receipt }],
  ]
}
