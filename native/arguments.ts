/**
 * Checks of what callers hand to the native door: title, expectation, actual.
 * Faults are TypeError or RangeError; nothing here touches a descriptor.
 */

const DESCRIPTOR_MAXIMUM = 2 ** 31 - 1
const DEADLINE_MAXIMUM = 2n ** 63n - 1n

/** sun_path is 108 bytes and must end in a NUL (unix(7)). */
export const SOCKET_PATH_MAXIMUM_BYTES = 107

/** PATH_MAX of Linux is 4096 with its NUL. */
const PATH_MAXIMUM_BYTES = 4095

function shown(value: unknown): string {
  if (typeof value === 'string') return 'a string'
  return typeof value === 'object' && value !== null ? 'an object' : String(value)
}

export function requireInteger(value: number, title: string, minimum: number, maximum: number): void {
  if (typeof value !== 'number') throw new TypeError(`"${title}" expected an integer, got ${shown(value)}`)
  if (Number.isInteger(value) && value >= minimum && value <= maximum) return
  throw new RangeError(`"${title}" expected an integer from ${minimum} to ${maximum}, got ${value}`)
}

export function requireDescriptor(value: number, title = 'fd'): void {
  requireInteger(value, title, 0, DESCRIPTOR_MAXIMUM)
}

export function requireDescriptors(values: readonly number[], title: string, maximum: number): void {
  if (!Array.isArray(values)) throw new TypeError(`"${title}" expected an array, got ${shown(values)}`)
  if (values.length > maximum) {
    throw new RangeError(`"${title}" expected at most ${maximum} descriptors, got ${values.length}`)
  }
  for (const value of values as readonly number[]) requireDescriptor(value, title)
}

export function requireBytes(value: Uint8Array, title: string): void {
  if (!(value instanceof Uint8Array))
    throw new TypeError(`"${title}" expected a Uint8Array, got ${shown(value)}`)
}

export function requireDeadline(value: bigint, title = 'deadlineBootNs'): void {
  if (typeof value !== 'bigint') throw new TypeError(`"${title}" expected a bigint, got ${shown(value)}`)
  if (value < 0n || value > DEADLINE_MAXIMUM)
    throw new RangeError(`"${title}" expected 0 to 2^63-1, got ${value}`)
}

function requireText(value: string, title: string, maximumBytes: number): void {
  if (typeof value !== 'string') throw new TypeError(`"${title}" expected a string, got ${shown(value)}`)
  if (value.length === 0) throw new RangeError(`"${title}" expected a name, got an empty string`)
  if (value.includes('\0')) throw new RangeError(`"${title}" expected no NUL character, got one`)
  const bytes = Buffer.byteLength(value)
  if (bytes > maximumBytes)
    throw new RangeError(`"${title}" expected at most ${maximumBytes} bytes, got ${bytes}`)
}

export function requirePath(value: string, title = 'path'): void {
  requireText(value, title, PATH_MAXIMUM_BYTES)
}

export function requireSocketPath(value: string, title = 'path'): void {
  requireText(value, title, SOCKET_PATH_MAXIMUM_BYTES)
}

/** An abstract name is what follows the NUL of sun_path. */
export function requireAbstractName(value: string, title = 'abstractName'): void {
  requireText(value, title, SOCKET_PATH_MAXIMUM_BYTES - 1)
}

/** memfd_create(2) takes names up to 249 bytes. */
export function requireMemfdName(value: string, title = 'name'): void {
  requireText(value, title, 249)
}
