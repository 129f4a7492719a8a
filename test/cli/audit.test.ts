// chio audit verify on a good export, and on one that was truncated, edited, reordered or taken from another log: each
// refused with the name of the place, also where whoever changed it made the manifest fit.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { verifyExport } from '../../cli/audit-verify.js'
import { Checkpoint, logIdOf } from '../../protocol/checkpoint.js'
import { encode } from '../../protocol/codec.js'
import type { ConsistencyProof } from '../../protocol/log-proof.js'
import { sha256Hex } from '../../protocol/digest.js'
import { isBrokerError } from '../../protocol/errors.js'
import {
  CHECKPOINTS_FILE,
  EXPORT_MANIFEST_SCHEMA,
  ExportManifest,
  MANIFEST_FILE,
  RECEIPTS_FILE,
} from '../../protocol/export-manifest.js'
import {
  checkpointsOver,
  LOG_KEY,
  receiptLine,
  receiptsOf,
  STRANGERS_KEY,
} from '../support/kernel-receipts.js'
import { catchOutput } from '../support/caught-output.js'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'chio-audit-'))
})
afterEach(() => {
  vi.restoreAllMocks()
  rmSync(folder, { recursive: true, force: true })
})

const receipts = receiptsOf(9)
const receiptLines = receipts.map(receiptLine)
const checkpointLines = checkpointsOver(receipts, 4).map(checkpoint =>
  Buffer.from(encode(Checkpoint, checkpoint)).toString(),
)

interface Export {
  readonly receipts: readonly string[]
  readonly checkpoints: readonly string[]
}
const good: Export = { receipts: receiptLines, checkpoints: checkpointLines }

/** Writes an export whose manifest fits whatever stands in its files, as an attacker would. */
function write({ checkpoints, receipts: entries }: Export, name = 'export'): string {
  const path = join(folder, name)
  mkdirSync(path)
  const files = [
    [RECEIPTS_FILE, entries],
    [CHECKPOINTS_FILE, checkpoints],
  ] as const
  const listed = files.map(([file, lines]) => {
    const bytes = Buffer.from(lines.map(line => `${line}\n`).join(''))
    writeFileSync(join(path, file), bytes)
    return { bytes: bytes.length, path: file, sha256: sha256Hex(bytes) }
  })
  const manifest = encode(ExportManifest, {
    counts: { checkpoints: checkpoints.length, receipts: entries.length },
    exportedAtUnixMs: 1_800_000_000_000,
    files: listed,
    kernelKey: LOG_KEY.publicKey,
    logId: logIdOf(LOG_KEY.publicKey),
    proofCoverage: { covered: 8, uncovered: 1 },
    schema: EXPORT_MANIFEST_SCHEMA,
  })
  writeFileSync(join(path, MANIFEST_FILE), Buffer.concat([manifest, Buffer.from('\n')]))
  return path
}

function verified(
  path: string,
  { from, json = false, key = String(LOG_KEY.publicKey) } = {} as {
    from?: string
    json?: boolean
    key?: string
  },
): string {
  const printed = catchOutput()
  const pin = join(folder, 'kernel.pub')
  writeFileSync(pin, `${key}\n`)
  try {
    verifyExport(path, { json, trustedKernelPubkey: pin, ...(from === undefined ? {} : { from }) })
    return printed.text()
  } catch (error) {
    return isBrokerError(error) ? `${error.code}: ${error.message}` : String(error)
  } finally {
    printed.restore()
  }
}

describe('a good export', () => {
  test('verifies, and says what no checkpoint covers', () => {
    expect(verified(write(good))).toBe(
      'Verified 9 receipts and 2 checkpoints: signatures, order, inclusion and consistency.\n1 receipts after the last checkpoint: signatures alone.',
    )
  })

  test('is one document with --json', () => {
    expect(JSON.parse(verified(write(good), { json: true }))).toEqual({
      schema: 'chio.audit-verification.v1',
      receipts: 9,
      checkpoints: 2,
      covered: 8,
      uncovered: 1,
      log_id: logIdOf(LOG_KEY.publicKey),
      trusted_kernel_key: LOG_KEY.publicKey,
    })
  })

  test('of an empty log verifies too', () => {
    expect(verified(write({ receipts: [], checkpoints: [] }))).toContain(
      'Verified 0 receipts and 0 checkpoints',
    )
  })
})

describe('a truncated export', () => {
  test('is refused at the batch that is not whole', () => {
    expect(verified(write({ ...good, receipts: receiptLines.slice(0, 7) }))).toBe(
      'log_refused: checkpoint 2 refused: expected all entries up to 8, got the last at 7',
    )
  })

  test('by less than a batch is refused by its manifest', () => {
    const path = write(good)
    writeFileSync(join(path, RECEIPTS_FILE), `${receiptLines.slice(0, 8).join('\n')}\n`)
    expect(verified(path)).toBe(
      'log_refused: receipts.jsonl refused: expected 9 lines by its manifest, got 8',
    )
  })

  test('by a whole batch and its checkpoint is refused beside an earlier export', () => {
    const path = write({ receipts: receiptLines.slice(0, 4), checkpoints: checkpointLines.slice(0, 1) })
    expect(verified(path)).toContain('Verified 4 receipts')
    expect(verified(path, { from: write(good, 'earlier') })).toBe(
      'log_refused: checkpoint 2 refused: expected it in this export, as it was known before, got a shorter log',
    )
    expect(verified(join(folder, 'earlier'), { from: path })).toContain(
      'It continues checkpoint 1, of 4 receipts: 1 consistency proofs.',
    )
  })

  test('in its middle is refused at its batch', () => {
    expect(verified(write({ ...good, receipts: receiptLines.filter((_, index) => index !== 5) }))).toContain(
      'checkpoint 2 refused: expected entries 5 to 8 as they were signed',
    )
  })

  test('without a file, or without its manifest, is refused by name', () => {
    for (const file of [RECEIPTS_FILE, CHECKPOINTS_FILE, MANIFEST_FILE]) {
      const path = write(good, file.replace('.', '-'))
      rmSync(join(path, file))
      expect(verified(path)).toBe(`usage: ${file} refused: expected a readable file, got ENOENT`)
    }
  })
})

describe('an edited export', () => {
  test('is refused at the line of the receipt', () => {
    const edited = receiptLines.map((line, index) =>
      index === 2 ? line.replace('"timestamp":1800000000', '"timestamp":1800000001') : line,
    )
    expect(verified(write({ ...good, receipts: edited }))).toMatch(
      /^receipt_refused: receipts\.jsonl line 3 refused: receipt id refused/,
    )
  })

  test('with a receipt of another log of the same kernel is refused at its batch', () => {
    const [foreign] = receiptsOf(12).slice(11).map(receiptLine)
    expect(verified(write({ ...good, receipts: receiptLines.with(1, foreign as string) }))).toContain(
      'checkpoint 1 refused: expected entries 1 to 4 as they were signed',
    )
  })

  test('in a checkpoint is refused at the checkpoint', () => {
    const edited = checkpointLines.with(1, (checkpointLines[1] as string).replace('1800000000', '1800000001'))
    expect(verified(write({ ...good, checkpoints: edited }))).toContain('checkpoint 2 signature refused')
  })

  test('only in its spelling is refused by its manifest', () => {
    const path = write(good)
    writeFileSync(join(path, RECEIPTS_FILE), `${receiptLines.join('\n\n')}\n`)
    expect(verified(path)).toContain('receipts.jsonl refused: expected')
    expect(verified(path)).toContain('bytes by its manifest')
  })
})

describe('a reordered export', () => {
  test('is refused at the batch of the receipts', () => {
    const turned = receiptLines.with(0, receiptLines[1] as string).with(1, receiptLines[0] as string)
    expect(verified(write({ ...good, receipts: turned }))).toContain(
      'checkpoint 1 refused: expected entries 1 to 4 as they were signed, in their order',
    )
  })

  test('of its checkpoints is refused at the first that does not follow', () => {
    expect(verified(write({ ...good, checkpoints: checkpointLines.toReversed() }))).toContain(
      'checkpoint 2 checkpoint_seq refused: expected 1, got 2',
    )
  })
})

describe('an export beside a checkpoint that was kept', () => {
  const kept = (line: string): string => {
    const path = join(folder, 'kept.json')
    writeFileSync(path, `${line}\n`)
    return path
  }
  const of = (entries: typeof receipts): Export => ({
    receipts: entries.map(receiptLine),
    checkpoints: checkpointsOver(entries, 4).map(checkpoint =>
      Buffer.from(encode(Checkpoint, checkpoint)).toString(),
    ),
  })
  const grown = receiptsOf(17)

  test('continues it by one verified proof for each checkpoint since', () => {
    const path = write(of(grown))
    const document = JSON.parse(verified(path, { from: kept(checkpointLines[0] as string), json: true })) as {
      consistency: { from_checkpoint_seq: number; proofs: ConsistencyProof[] }
    }
    expect(document.consistency.from_checkpoint_seq).toBe(1)
    expect(document.consistency.proofs.map(proof => proof.to_log_tree_size)).toEqual([8, 12, 16])
    expect(verified(path, { from: kept(checkpointLines[1] as string) })).toContain(
      'It continues checkpoint 2, of 8 receipts: 2 consistency proofs.',
    )
  })

  test('of a fork is refused, and what the fork has in common is proven', () => {
    const fork = write(of([...grown.slice(0, 4), ...grown.slice(8, 16)]))
    expect(verified(fork)).toContain('Verified 12 receipts')
    expect(verified(fork, { from: kept(checkpointLines[1] as string) })).toBe(
      'log_refused: checkpoint 2 refused: expected the one that was known before, got another: this is a fork of the log',
    )
    expect(verified(fork, { from: kept(checkpointLines[0] as string) })).toContain('2 consistency proofs')
  })

  test('is refused where the export was truncated, edited or reordered all the same', () => {
    const from = kept(checkpointLines[1] as string)
    const whole = of(grown)
    const changed: readonly [Export, string][] = [
      [of(grown.slice(0, 4)), 'a shorter log'],
      [{ ...whole, receipts: whole.receipts.slice(0, 15) }, 'expected all entries up to 16'],
      [{ ...whole, receipts: whole.receipts.with(9, whole.receipts[10] as string) }, 'checkpoint 3 refused'],
      [{ ...whole, checkpoints: whole.checkpoints.toReversed() }, 'checkpoint_seq refused'],
      [{ ...whole, checkpoints: whole.checkpoints.slice(1) }, 'checkpoint_seq refused'],
    ]
    for (const [index, [given, sentence]] of changed.entries())
      expect(verified(write(given, `changed-${index}`), { from })).toContain(sentence)
  })

  test('is compared with nothing that the pinned key did not sign', () => {
    const path = write(of(grown))
    const edited = (checkpointLines[0] as string).replace('"tree_size":4', '"tree_size":5')
    expect(verified(path, { from: kept(edited) })).toContain('log_refused: checkpoint 1 tree_size refused')
    const later = (checkpointLines[0] as string).replace('1800000000', '1800000001')
    expect(verified(path, { from: kept(later) })).toContain('log_refused: checkpoint 1 signature refused')
    expect(verified(path, { from: kept('') })).toContain('--from refused: expected a file of one checkpoint')
    expect(verified(path, { from: join(folder, 'nowhere') })).toContain('usage: --from refused')
    expect(verified(path, { from: write({ receipts: [], checkpoints: [] }, 'empty') })).toContain(
      'expected an export with a checkpoint, got one without',
    )
  })
})

describe('trust', () => {
  test('comes from the pinned key alone', () => {
    expect(verified(write(good), { key: STRANGERS_KEY.publicKey })).toBe(
      "log_refused: manifest.json refused: expected the pinned key's log, got another key's",
    )
    expect(verified(write(good, 'again'), { key: 'none' })).toContain('invalid trusted kernel key')
  })
})
