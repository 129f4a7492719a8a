// chio receipt verify: its bounds, its sentences, what it prints, and that it needs no kernel.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { verifyReceipts } from '../../cli/receipt.js'
import { isBrokerError } from '../../protocol/errors.js'
import { MAXIMUM_RECEIPT_COUNT, MAXIMUM_RECEIPT_LINE_BYTES } from '../../protocol/limits.js'
import { catchOutput } from '../support/caught-output.js'
import { fullCount } from '../support/counts.js'
import { LOG_KEY, receiptLine, receiptsOf, STRANGERS_KEY } from '../support/kernel-receipts.js'
import { describeVectors, readVectors } from '../support/vectors.js'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'chio-receipt-'))
})
afterEach(() => {
  vi.restoreAllMocks()
  rmSync(folder, { recursive: true, force: true })
})

function write(name: string, content: string | Uint8Array): string {
  const path = join(folder, name)
  writeFileSync(path, content)
  return path
}

/** What the command prints, or the sentence and code of its refusal. */
function verified(input: string, { json = false, key = String(LOG_KEY.publicKey) } = {}): string {
  const printed = catchOutput()
  try {
    verifyReceipts({ input, json, trustedKernelPubkey: write('kernel.pub', `${key}\n`) })
    return printed.text()
  } catch (error) {
    return isBrokerError(error) ? `${error.code}: ${error.message}` : String(error)
  }
}

const lines = receiptsOf(3).map(receiptLine)

describe('good receipts', () => {
  test('are counted, blank lines and a missing last newline aside', () => {
    const input = write('receipts', `\n${lines[0]}\n\n  \r\n${lines[1]}\n${lines[2]}`)
    expect(verified(input)).toBe('Verified 3 receipt signatures, signer pins and action hashes.')
  })

  test('are one document with --json', () => {
    expect(JSON.parse(verified(write('receipts', lines.join('\n')), { json: true }))).toEqual({
      schema: 'chio.receipt.signatures.v1',
      receipts_verified: 3,
      trusted_kernel_key: LOG_KEY.publicKey,
      checks: ['signature', 'signer_pin', 'action_parameter_hash'],
    })
  })

  test('may be spelt loosely, each on one line', () => {
    const loose = JSON.stringify(JSON.parse(lines[0] as string), null, 1).replaceAll('\n', ' ')
    expect(verified(write('receipts', loose))).toContain('Verified 1 receipt')
    expect(verified(write('receipts', JSON.stringify(JSON.parse(lines[0] as string), null, 1)))).toContain(
      'non-I-JSON receipt at line 1',
    )
  })
})

describe('a bad receipt', () => {
  test('is named by its line', () => {
    const spoiled = (lines[1] as string).replace('"timestamp":1800000000', '"timestamp":1800000001')
    const input = write('receipts', [lines[0], spoiled, lines[2]].join('\n'))
    expect(verified(input)).toMatch(/^receipt_refused: line 2 refused: receipt id refused/)
  })

  test('of another kernel, or of a member more, is refused', () => {
    const [stranger] = receiptsOf(1, STRANGERS_KEY).map(receiptLine)
    expect(verified(write('a', stranger as string))).toContain('line 1 refused: receipt kernel_key refused')
    const more = JSON.stringify({ ...JSON.parse(lines[0] as string), more: 1 })
    expect(verified(write('b', more))).toContain('receipt fields differ from the supported signed schema')
    expect(verified(write('c', '{"a":1,"a":2}'))).toContain('non-I-JSON receipt at line 1')
  })
})

describeVectors('receipts of the other implementation', vectors => {
  const read = (name: string) =>
    readVectors<{ cases: { receipt: { kernel_key: string } }[] }>(vectors, 'chio', 'receipt', name).cases

  test('verify in the current form and are refused by name in the old one', () => {
    const [current] = read('v1-content-addressed.json')
    const input = write('current', JSON.stringify(current?.receipt))
    expect(verified(input, { key: current?.receipt.kernel_key ?? '' })).toContain('Verified 1 receipt')
    const [old] = read('v1-old-form.json')
    const refused = verified(write('old', JSON.stringify(old?.receipt)), {
      key: old?.receipt.kernel_key ?? '',
    })
    expect(refused).toMatch(/^receipt_old_form: line 1 refused/)
  })
})

describe('bounds', () => {
  test('an input without a receipt is an error', () => {
    expect(verified(write('empty', '\n \n'))).toContain('expected at least one receipt, got none')
  })

  test('the last receipt that fits is taken, and one more refused', () => {
    const line = `${lines[0]}\n`
    // One more is refused once all others were verified: it is the longer proof of the two.
    const fits = fullCount(MAXIMUM_RECEIPT_COUNT / 10, MAXIMUM_RECEIPT_COUNT)
    expect(verified(write('full', line.repeat(fits)))).toContain(`Verified ${fits} receipt`)
    const over = write('over', line.repeat(MAXIMUM_RECEIPT_COUNT + 1))
    expect(verified(over)).toContain(`at most ${MAXIMUM_RECEIPT_COUNT} receipts, got more`)
  })

  test('a longer line and a larger input are refused', () => {
    const padding = ' '.repeat(MAXIMUM_RECEIPT_LINE_BYTES - (lines[0] as string).length)
    expect(verified(write('fits', `${lines[0]}${padding}`))).toContain('Verified 1 receipt')
    expect(verified(write('long', `${lines[0]}${padding} `))).toContain('a longer one at line 1')
    const large = `${' '.repeat(MAXIMUM_RECEIPT_LINE_BYTES - 1)}\n`.repeat(9)
    expect(verified(write('large', large))).toContain('at most 67108864 bytes, got more')
  })

  test('only a regular file is read', () => {
    const pipe = join(folder, 'pipe')
    execFileSync('mkfifo', [pipe])
    expect(verified(pipe)).toContain('expected a regular file, got something else')
    expect(verified(folder)).toContain('expected a regular file, got something else')
    expect(verified(join(folder, 'absent'))).toContain('expected a readable file, got ENOENT')
  })

  test.each(['', 'zz', '00'.repeat(32), `p256:${'0'.repeat(130)}`])('the key %j is no key', key => {
    expect(verified(write('receipts', lines.join('\n')), { key })).toContain('invalid trusted kernel key')
  })
})
