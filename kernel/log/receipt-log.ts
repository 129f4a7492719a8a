// Owns: the kernel's log as moves write it: the receipt of a decision in the commit of the decision, and a checkpoint
// as soon as a batch is full.
// Must never: let a decision be committed without its receipt, or a receipt without its decision.
// Source: the receipt log and its checkpoints; RFC 6962 section 2.1.
import { type AdmissionState, isTerminalState } from '../../protocol/admission-states.js'
import {
  CHECKPOINT_SCHEMA,
  chainLeafHash,
  checkpointDigest,
  signCheckpoint,
} from '../../protocol/checkpoint.js'
import { BrokerError } from '../../protocol/errors.js'
import type { KernelReceipt } from '../../protocol/kernel-receipt.js'
import { logHashText } from '../../protocol/log-hash.js'
import { grownFrontier, merkleRoot, rootOfFrontier } from '../../protocol/merkle.js'
import {
  type DecisionReason,
  isDecision,
  type LogSettings,
  operationReceipt,
  type Refusal,
  refusalReceipt,
} from './decision-receipt.js'
import type { AdmissionOperation } from '../operation/operation.js'
import type { SqliteMove } from '../sqlite/move.js'
import type { ReceiptAbout, ReceiptStage } from '../sqlite/receipt-tables.js'

/** Writes the receipt of the decision that an operation's new state is; other states are no decision. */
export function logDecision(move: SqliteMove, operation: AdmissionOperation, reason: DecisionReason): void {
  if (!isDecision(operation.state)) return
  const settings = settingsOf(move)
  const receipt = operationReceipt(settings, operation, move, reason)
  if (receipt === undefined) return
  const { callerPublicKey, operationId, state } = operation
  append(move, settings, receipt, { callerPublicKey, operationId, stage: stageOf(state) })
}

/** Writes the receipt of a refusal, which changed nothing else. */
export function logRefusal(move: SqliteMove, refusal: Refusal): KernelReceipt {
  const settings = settingsOf(move)
  const receipt = refusalReceipt(settings, refusal, move)
  const { callerPublicKey, operation } = refusal
  const operationId = operation?.operationId ?? null
  append(move, settings, receipt, { callerPublicKey, operationId, stage: 'refused' })
  return receipt
}

function stageOf(state: AdmissionState): ReceiptStage {
  if (isTerminalState(state)) return 'ended'
  return state === 'dispatch_committed' ? 'started' : 'reserved'
}

/** Covers everything up to now by a checkpoint. @returns how many entries the log has. */
export function sealLog(move: SqliteMove): number {
  const entries = move.receipts.entries()
  if (move.receipts.covered() < entries) appendCheckpoint(move, settingsOf(move), entries)
  return entries
}

function append(move: SqliteMove, settings: LogSettings, receipt: KernelReceipt, about: ReceiptAbout): void {
  const entrySeq = move.receipts.append(receipt, about)
  if (entrySeq - move.receipts.covered() >= settings.checkpointReceipts)
    appendCheckpoint(move, settings, entrySeq)
}

function appendCheckpoint(move: SqliteMove, { key }: LogSettings, endSeq: number): void {
  const last = move.receipts.lastCheckpoint()
  const before = last?.checkpoint.body
  const startSeq = (before?.batch_end_seq ?? 0) + 1
  const batch = {
    batch_end_seq: endSeq,
    batch_start_seq: startSeq,
    checkpoint_seq: (before?.checkpoint_seq ?? 0) + 1,
    merkle_root: logHashText(merkleRoot(move.receipts.leaves(startSeq, endSeq))),
  }
  const chain = grownFrontier(last?.chain ?? [], batch.checkpoint_seq - 1, chainLeafHash(batch))
  const checkpoint = signCheckpoint(
    {
      ...batch,
      chain_root: logHashText(rootOfFrontier(chain)),
      issued_at: Math.floor(move.nowUnixMs / 1_000),
      kernel_key: key.publicKey,
      ...(before === undefined ? {} : { previous_checkpoint_sha256: checkpointDigest(before) }),
      schema: CHECKPOINT_SCHEMA,
      tree_size: endSeq - startSeq + 1,
    },
    key,
  )
  move.receipts.appendCheckpoint(checkpoint, chain)
}

/** A store that was opened to be read has no key, and decides nothing. */
function settingsOf({ log }: SqliteMove): LogSettings {
  if (log !== null) return log
  throw new BrokerError(
    'invariant',
    'decision refused: expected a store that was opened with the key of its receipts, got one opened without',
  )
}
