// Owns byte strings as the wire writes them: `[104,105]`, decimal, no spaces, no leading zeros.
// Read and written straight from and to the byte buffer; a frame of megabytes is mostly this, so the
// loops are flat on purpose. Must never build an array of numbers.
// Source: the broker protocol's encoding rules, section 0.

export const COMMA = 0x2c
export const OPENING_BRACKET = 0x5b
export const CLOSING_BRACKET = 0x5d
const ZERO = 0x30
/** Text of one byte at most: three digits and what follows them. */
export const MAXIMUM_DECIMAL_BYTES = 4

/** Where a run of decimals stopped, and how many bytes it gave. */
export interface DecimalCursor {
  /** Offset of the next byte of text to read: the start of a number. */
  offset: number
  /** Bytes written to the target so far. */
  count: number
  /** The closing bracket was read; `offset` stands behind it. */
  closed: boolean
}

/**
 * Reads numbers into `target` until the closing bracket or until `softEnd` is passed.
 * @returns false at the first byte that is not canonical, with `cursor.offset` on that number.
 */
export function readDecimals(
  source: Uint8Array,
  target: Uint8Array,
  cursor: DecimalCursor,
  softEnd: number,
): boolean {
  let i = cursor.offset
  let count = cursor.count
  let separator = COMMA
  while (i < softEnd) {
    const start = i
    let value = (source[i++] as number) - ZERO
    let next = source[i++] as number
    if (!(value >= 0 && value <= 9) || count >= target.length) return stop(cursor, start, count)
    if (value !== 0) {
      // Three digits at most: a fourth stays in `next` and is refused below.
      for (let digit = next - ZERO; digit >= 0 && digit <= 9 && value < 100; digit = next - ZERO) {
        value = value * 10 + digit
        next = source[i++] as number
      }
    }
    if (value > 255) return stop(cursor, start, count)
    target[count++] = value
    if (next !== COMMA) {
      if (next !== CLOSING_BRACKET) return stop(cursor, start, count - 1)
      separator = next
      break
    }
  }
  cursor.offset = i
  cursor.count = count
  cursor.closed = separator === CLOSING_BRACKET
  return true
}

function stop(cursor: DecimalCursor, offset: number, count: number): false {
  cursor.offset = offset
  cursor.count = count
  return false
}

/**
 * Numbers in a text of numbers and commas, four characters at a time: bit 4 is set in every digit and clear
 * in a comma. For any other text it is at least the number of commas plus one, which is what room needs.
 */
export function countDecimals(source: Uint8Array, from: number, to: number): number {
  const words = new DataView(source.buffer, source.byteOffset, source.byteLength)
  let commas = 0
  let i = from
  for (; i + 4 <= to; i += 4) {
    const clear = (~words.getInt32(i, true) >>> 4) & 0x01010101
    commas += Math.imul(clear, 0x01010101) >>> 24
  }
  for (; i < to; i++) commas += (~(source[i] as number) >>> 4) & 1
  return commas + 1
}

/** Each byte as decimals and a comma: four characters in one word, and how many of them count. */
const DECIMAL_WORD = new Uint32Array(256)
const DECIMAL_LENGTH = new Uint8Array(256)
/** Room that writeDecimals needs behind its last character, since it writes words. */
export const DECIMAL_SLACK_BYTES = 4

for (let value = 0; value < 256; value++) {
  const characters = Buffer.from(`${value},`.padEnd(4, '\0'), 'latin1')
  DECIMAL_WORD[value] = characters.readUInt32LE(0)
  DECIMAL_LENGTH[value] = `${value},`.length
}

/** Characters that these bytes take as decimals with a comma after each. */
export function decimalTextBytes(bytes: Uint8Array): number {
  let total = 0
  for (let i = 0; i < bytes.length; i++) total += DECIMAL_LENGTH[bytes[i] as number] as number
  return total
}

/**
 * Writes `bytes` as decimals with a comma after each, at `offset`; up to three bytes behind are zeroed.
 * @returns the offset behind the last comma.
 */
export function writeDecimals(target: DataView, offset: number, bytes: Uint8Array): number {
  let end = offset
  for (let i = 0; i < bytes.length; i++) {
    const value = bytes[i] as number
    target.setUint32(end, DECIMAL_WORD[value] as number, true)
    end += DECIMAL_LENGTH[value] as number
  }
  return end
}
