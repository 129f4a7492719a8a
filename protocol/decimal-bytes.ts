// Owns byte strings as the wire writes them: `[104,105]`, decimal, no spaces, no leading zeros.
// Read and written straight from and to the byte buffer; a frame of megabytes is mostly this, so the
// loops are flat on purpose. Must never build an array of numbers.
// Source: the broker protocol's encoding rules, section 0.

export const COMMA = 0x2c
export const OPENING_BRACKET = 0x5b
export const CLOSING_BRACKET = 0x5d
const ZERO = 0x30

/** Where a run of decimals stopped, and how many bytes it gave. */
export interface DecimalCursor {
  /** Offset of the next byte of text to read: the start of a number. */
  offset: number
  /** Bytes written to the target so far. */
  count: number
  /** The closing bracket was read; `offset` stands behind it. */
  closed: boolean
}

/** Room that text of this length can need at most: every byte takes one digit and one comma. */
export function decimalCapacity(textBytes: number): number {
  return (textBytes + 1) >>> 1
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
    if (next !== COMMA && value !== 0) {
      let digit = next - ZERO
      if (digit >= 0 && digit <= 9) {
        value = value * 10 + digit
        next = source[i++] as number
        digit = next - ZERO
        if (digit >= 0 && digit <= 9) {
          value = value * 10 + digit
          next = source[i++] as number
        }
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

/** Characters that these bytes take as decimals with a comma after each. */
export function decimalTextBytes(bytes: Uint8Array): number {
  let total = bytes.length * 2
  for (let i = 0; i < bytes.length; i++) {
    const value = bytes[i] as number
    if (value > 9) total += value > 99 ? 2 : 1
  }
  return total
}

/**
 * Writes `bytes` as decimals with a comma after each, at `offset`.
 * @returns the offset behind the last comma. The caller has made the room (four bytes a byte suffice).
 */
export function writeDecimals(target: Uint8Array, offset: number, bytes: Uint8Array): number {
  let o = offset
  for (let i = 0; i < bytes.length; i++) {
    const value = bytes[i] as number
    if (value > 9) {
      if (value > 99) {
        const hundreds = value > 199 ? 2 : 1
        target[o++] = ZERO + hundreds
        const rest = value - hundreds * 100
        const tens = (rest * 205) >>> 11
        target[o++] = ZERO + tens
        target[o++] = ZERO + rest - tens * 10
      } else {
        const tens = (value * 205) >>> 11
        target[o++] = ZERO + tens
        target[o++] = ZERO + value - tens * 10
      }
    } else target[o++] = ZERO + value
    target[o++] = COMMA
  }
  return o
}
