// chio audit export: the kernel's log in a folder of its own, receipts one a line, checkpoints, and a manifest. It is
// asked for a checkpoint first, so that everything that is exported is proven. Writes into a new folder alone.
import { createHash } from 'node:crypto'
import { closeSync, fsyncSync, mkdirSync, openSync, writeSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { KernelClient } from '../client/kernel-client.js'
import { systemClock } from '../native/clock.js'
import { type Checkpoint, Checkpoint as CheckpointCodec, logIdOf } from '../protocol/checkpoint.js'
import { encode } from '../protocol/codec.js'
import { BrokerError } from '../protocol/errors.js'
import {
  CHECKPOINTS_FILE,
  EXPORT_MANIFEST_SCHEMA,
  type ExportedFile,
  ExportManifest,
  MANIFEST_FILE,
  RECEIPTS_FILE,
} from '../protocol/export-manifest.js'
import { receiptEntry } from '../protocol/kernel-receipt.js'
import { readPins } from './host-session.js'
import { withKernel } from './kernel-call.js'
import { type CommonOptions, print } from './output.js'
import { findState, layoutOfState } from './state.js'

const NEWLINE = Buffer.from('\n')

export interface ExportOptions extends CommonOptions {
  readonly output: string
}

/** Exports the whole log up to now. */
export async function exportLog(options: ExportOptions): Promise<void> {
  const folder = resolve(options.output)
  const { kernelKey } = readPins(layoutOfState(findState(options.state)))
  const manifest = await withKernel(options, async kernel => {
    const { entries } = await kernel.call('seal_log', {})
    makeFolder(folder)
    return exported(kernel, folder, { entries, kernelKey })
  })
  writeFile(folder, MANIFEST_FILE, [encode(ExportManifest, manifest)])
  const { counts, proofCoverage } = manifest
  const document = { schema: 'chio.audit-export.v1', folder, ...counts, ...proofCoverage }
  print(options, document, [
    `Exported ${counts.receipts} receipts under ${counts.checkpoints} checkpoints to ${folder}.`,
    'Next: chio audit verify, wherever the kernel key is known.',
  ])
}

async function exported(
  kernel: KernelClient,
  folder: string,
  { entries, kernelKey }: { readonly entries: number; readonly kernelKey: string },
): Promise<ExportManifest> {
  const receipts = new LineFile(folder, RECEIPTS_FILE)
  while (receipts.lines < entries) {
    const page = await kernel.call('read_log', { afterSeq: receipts.lines })
    if (page.receipts.length === 0) throw incomplete(entries, receipts.lines)
    for (const receipt of page.receipts.slice(0, entries - receipts.lines))
      receipts.add(receiptEntry(receipt))
  }
  const checkpoints = new LineFile(folder, CHECKPOINTS_FILE)
  let covered = 0
  for await (const checkpoint of checkpointsOf(kernel)) {
    if (checkpoint.body.batch_end_seq > entries) break
    checkpoints.add(encode(CheckpointCodec, checkpoint))
    covered = checkpoint.body.batch_end_seq
  }
  return {
    counts: { checkpoints: checkpoints.lines, receipts: receipts.lines },
    exportedAtUnixMs: systemClock.unixMs(),
    files: [receipts.end(), checkpoints.end()],
    kernelKey,
    logId: logIdOf(kernelKey),
    proofCoverage: { covered, uncovered: receipts.lines - covered },
    schema: EXPORT_MANIFEST_SCHEMA,
  }
}

async function* checkpointsOf(kernel: KernelClient): AsyncGenerator<Checkpoint> {
  let afterSeq = 0
  for (;;) {
    const { checkpoints } = await kernel.call('read_checkpoints', { afterSeq })
    if (checkpoints.length === 0) return
    yield* checkpoints
    afterSeq += checkpoints.length
  }
}

/** A file that is written line by line, with the facts that the manifest says of it. */
class LineFile {
  lines = 0
  readonly #path: string
  readonly #descriptor: number
  readonly #hash = createHash('sha256')
  #bytes = 0

  constructor(folder: string, path: string) {
    this.#path = path
    this.#descriptor = openSync(join(folder, path), 'wx', 0o600)
  }

  add(line: Uint8Array): void {
    for (const part of [line, NEWLINE]) {
      writeWhole(this.#descriptor, part)
      this.#hash.update(part)
      this.#bytes += part.length
    }
    this.lines += 1
  }

  end(): ExportedFile {
    fsyncSync(this.#descriptor)
    closeSync(this.#descriptor)
    return { bytes: this.#bytes, path: this.#path, sha256: this.#hash.digest('hex') }
  }
}

/** A write may take less than it was given. */
function writeWhole(descriptor: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at)
}

function writeFile(folder: string, name: string, lines: readonly Uint8Array[]): void {
  const file = new LineFile(folder, name)
  for (const line of lines) file.add(line)
  file.end()
}

/** Never into a folder that holds something already: two exports must not be mixed. */
function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? 'a fault'
    throw new BrokerError('usage', `--output refused: expected a folder that is not there yet, got ${code}`, {
      cause,
    })
  }
}

function incomplete(expected: number, got: number): BrokerError {
  return new BrokerError(
    'log_refused',
    `log refused: expected ${expected} entries, got ${got}; export it anew`,
  )
}
