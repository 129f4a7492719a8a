// chio audit verify: an export of a kernel's log, verified offline with a pinned kernel key: every signature, the order
// and completeness of every batch, the chain of the checkpoints. Reads the folder and nothing else.
import { createHash } from 'node:crypto'
import { join, resolve } from 'node:path'
import { type Checkpoint, checkpointDigest, logIdOf } from '../protocol/checkpoint.js'
import { decode } from '../protocol/codec.js'
import { BrokerError, isBrokerError } from '../protocol/errors.js'
import {
  CHECKPOINTS_FILE,
  type ExportedFile,
  ExportManifest,
  MANIFEST_FILE,
  RECEIPTS_FILE,
} from '../protocol/export-manifest.js'
import type { PublicKey } from '../protocol/keys.js'
import { MAXIMUM_INTEGER, MAXIMUM_RECEIPT_LINE_BYTES } from '../protocol/limits.js'
import { LogVerifier, verifyCheckpointChain } from '../protocol/log-verifier.js'
import { verifyReceiptLine } from '../protocol/receipt-line.js'
import type { Verified } from '../protocol/verified.js'
import { checkpointLines, type Consistency, provenFrom, readEarlierCheckpoint } from './audit-consistency.js'
import { readLines, readSmallFile } from './line-file.js'
import { type CommonOptions, print } from './output.js'
import { readTrustedKey } from './receipt.js'

const MAXIMUM_MANIFEST_BYTES = 65_536

export interface AuditOptions extends CommonOptions {
  readonly trustedKernelPubkey: string
  /** A checkpoint that was kept, or an earlier export: the log has to continue it. */
  readonly from?: string
}

/** Verifies an export. The first place that is not as it was signed ends it, and is named. */
export function verifyExport(folder: string, options: AuditOptions): void {
  const pinned = readTrustedKey(options.trustedKernelPubkey)
  const given = resolve(folder)
  const manifest = readManifest(given, pinned)
  const checkpoints = readCheckpoints(given, manifest, pinned)
  const { covered, entries } = readReceipts(given, manifest, { checkpoints, pinned })
  const known =
    options.from === undefined
      ? undefined
      : provenFrom(readEarlierCheckpoint(resolve(options.from), pinned), checkpoints)
  const document = {
    schema: 'chio.audit-verification.v1',
    receipts: entries,
    checkpoints: checkpoints.length,
    covered,
    uncovered: entries - covered,
    log_id: logIdOf(pinned),
    trusted_kernel_key: pinned,
    ...(known && { consistency: consistencyOf(known) }),
  }
  print(options, document, [
    `Verified ${entries} receipts and ${checkpoints.length} checkpoints: signatures, order, inclusion and consistency.`,
    ...(covered === entries
      ? []
      : [`${entries - covered} receipts after the last checkpoint: signatures alone.`]),
    ...(known === undefined ? [] : [continues(known)]),
  ])
}

function consistencyOf({ from, proofs }: Consistency) {
  const { checkpoint_seq } = from.body
  return { from_checkpoint_seq: checkpoint_seq, from_checkpoint_sha256: checkpointDigest(from.body), proofs }
}

function continues({ from, proofs }: Consistency): string {
  const { batch_end_seq, checkpoint_seq } = from.body
  return `It continues checkpoint ${checkpoint_seq}, of ${batch_end_seq} receipts: ${proofs.length} consistency proofs.`
}

function readManifest(folder: string, pinned: PublicKey): ExportManifest {
  const bytes = readSmallFile(join(folder, MANIFEST_FILE), MANIFEST_FILE, MAXIMUM_MANIFEST_BYTES)
  const manifest = decode(
    ExportManifest,
    bytes.at(-1) === 0x0a ? bytes.subarray(0, -1) : bytes,
    MANIFEST_FILE,
  )
  if (manifest.kernelKey !== pinned || manifest.logId !== logIdOf(pinned)) {
    refuse(MANIFEST_FILE, "the pinned key's log", "another key's")
  }
  return manifest
}

/** What the manifest says of a file is compared last: what is signed decides first, and names the place. */
function fileFacts(manifest: ExportManifest, path: string) {
  const said = manifest.files.find(file => file.path === path)
  if (said === undefined) refuse(MANIFEST_FILE, `a row of ${path}`, 'none')
  const hash = createHash('sha256')
  let bytes = 0
  return {
    onBytes: (chunk: Uint8Array): void => {
      hash.update(chunk)
      bytes += chunk.length
    },
    assert: (): void => {
      assertFile(said, { bytes, path, sha256: hash.digest('hex') })
    },
  }
}

function assertFile(said: ExportedFile, { bytes, path, sha256 }: ExportedFile): void {
  if (said.bytes !== bytes) refuse(path, `${said.bytes} bytes by its manifest`, String(bytes))
  if (said.sha256 !== sha256) refuse(path, 'the digest of its manifest', 'another')
}

function readCheckpoints(
  folder: string,
  manifest: ExportManifest,
  pinned: PublicKey,
): Verified<Checkpoint>[] {
  const facts = fileFacts(manifest, CHECKPOINTS_FILE)
  const checkpoints = [...checkpointLines(join(folder, CHECKPOINTS_FILE), facts.onBytes)]
  const verified = verifyCheckpointChain(checkpoints, pinned)
  assertCount(CHECKPOINTS_FILE, manifest.counts.checkpoints, verified.length)
  facts.assert()
  return verified
}

interface Trust {
  readonly checkpoints: readonly Verified<Checkpoint>[]
  readonly pinned: PublicKey
}

function readReceipts(folder: string, manifest: ExportManifest, { checkpoints, pinned }: Trust) {
  const facts = fileFacts(manifest, RECEIPTS_FILE)
  const verifier = new LogVerifier(checkpoints)
  const bounds = {
    what: RECEIPTS_FILE,
    maximumBytes: MAXIMUM_INTEGER,
    maximumLineBytes: MAXIMUM_RECEIPT_LINE_BYTES,
    onBytes: facts.onBytes,
  }
  for (const { bytes, number } of readLines(join(folder, RECEIPTS_FILE), bounds)) {
    verifier.add(receiptAt(bytes, number, pinned))
  }
  const found = verifier.end()
  assertCount(RECEIPTS_FILE, manifest.counts.receipts, found.entries)
  facts.assert()
  return found
}

function receiptAt(bytes: Uint8Array, number: number, pinned: PublicKey) {
  try {
    return verifyReceiptLine(bytes, number, pinned)
  } catch (cause) {
    if (!isBrokerError(cause)) throw cause
    throw new BrokerError(cause.code, `${RECEIPTS_FILE} ${cause.message}`, { cause })
  }
}

function assertCount(what: string, said: number, got: number): void {
  if (said !== got) refuse(what, `${said} lines by its manifest`, String(got))
}

function refuse(what: string, expected: string, got: string): never {
  throw new BrokerError('log_refused', `${what} refused: expected ${expected}, got ${got}`)
}
