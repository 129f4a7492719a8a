// The manifest of an export of the kernel's log: which files belong to it, by length and digest, and how much of it
// checkpoints prove. Must never be trusted by itself: nothing signs it, and all that counts is verified from the files.
// Source: `chio.evidence_export_manifest.v1`; camelCase is its own.
import {
  array,
  digest,
  type Infer,
  identifier,
  integer,
  literal,
  object,
  pattern,
  publicKeyHex,
} from './codec.js'
import { MAXIMUM_INTEGER } from './limits.js'
import { Count, UnixMs } from './unix-time.js'

export const EXPORT_MANIFEST_SCHEMA = 'chio.evidence_export_manifest.v1'
export const RECEIPTS_FILE = 'receipts.jsonl'
export const CHECKPOINTS_FILE = 'checkpoints.jsonl'
export const MANIFEST_FILE = 'manifest.json'

/** A name in the export's own folder: nothing leads out of it. */
const fileName = pattern(/^[a-z0-9][a-z0-9.-]{0,63}$/, 64, 'a file name of this folder')

const ExportedFile = object({
  bytes: integer({ min: 0, max: MAXIMUM_INTEGER }),
  path: fileName,
  sha256: digest(),
})
export type ExportedFile = Infer<typeof ExportedFile>

export const ExportManifest = object({
  counts: object({ checkpoints: Count, receipts: Count }),
  exportedAtUnixMs: UnixMs,
  files: array(ExportedFile, { min: 2, max: 2 }),
  kernelKey: publicKeyHex(),
  logId: identifier(),
  /** Receipts whose order and completeness a checkpoint proves, and those after the last one. */
  proofCoverage: object({ covered: Count, uncovered: Count }),
  schema: literal(EXPORT_MANIFEST_SCHEMA),
})
export type ExportManifest = Infer<typeof ExportManifest>
