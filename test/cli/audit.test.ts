// chio audit verify on a good export, and on one that was truncated, edited, reordered or taken from another log: each
// refused with the name of the place, also where whoever changed it made the manifest fit.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { verifyExport } from '../../cli/audit-verify.js'
import { Checkpoint, logIdOf } from '../../protocol/checkpoint.js'
import { encode } from '../../protocol/codec.js'
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
  { after, json = false, key = String(LOG_KEY.publicKey) } = {} as {
    after?: string
    json?: boolean
    key?: string
  },
): string {
  const printed = vi.spyOn(console, 'log').mockImplementation(() => undefined)
  const pin = join(folder, 'kernel.pub')
  writeFileSync(pin, `${key}\n`)
  try {
    verifyExport(path, { json, trustedKernelPubkey: pin, ...(after === undefined ? {} : { after }) })
    return printed.mock.calls.flat().join('\n')
  } catch (error) {
    return isBrokerError(error) ? `${error.code}: ${error.message}` : String(error)
  } finally {
    printed.mockRestore()
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
    expect(verified(path, { after: write(good, 'earlier') })).toBe(
      'log_refused: checkpoint 2 refused: expected it in this export, as in the earlier one, got a shorter log',
    )
    expect(verified(join(folder, 'earlier'), { after: path })).toContain('Verified 9 receipts')
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

describe('trust', () => {
  test('comes from the pinned key alone', () => {
    expect(verified(write(good), { key: STRANGERS_KEY.publicKey })).toBe(
      "log_refused: manifest.json refused: expected the pinned key's log, got another key's",
    )
    expect(verified(write(good, 'again'), { key: 'none' })).toContain('invalid trusted kernel key')
  })
})
