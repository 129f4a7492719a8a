// Owns the changing of one member of a document at a time, so that a test can try every binding without naming
// them. Must never change two.
import { OWN_KEYS } from './own-request.js'

export type Path = readonly (string | number)[]

/** The path of every value that is not an object or a list; byte strings count as one value. */
export function leafPaths(value: unknown, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return [path]
  return Object.entries(value).flatMap(([name, member]) =>
    leafPaths(member, [...path, Array.isArray(value) ? Number(name) : name]),
  )
}

/** A copy of the document in which the value at `path` is another of the same form. */
export function changedAt<T>(document: T, path: Path): T {
  const copy = structuredClone(document)
  const last = path.at(-1) as string
  const parent = path
    .slice(0, -1)
    .reduce<Record<string, unknown>>(
      (object, name) => object[name] as Record<string, unknown>,
      copy as Record<string, unknown>,
    )
  parent[last] = another(parent[last])
  return copy
}

function another(value: unknown): unknown {
  if (typeof value === 'number') return value + 1
  if (typeof value === 'boolean') return !value
  if (value instanceof Uint8Array) return Uint8Array.from([...value.subarray(1), 0x21])
  if (typeof value === 'string') return anotherText(value)
  return 'e'.repeat(64)
}

function anotherText(value: string): string {
  if (Object.values(OWN_KEYS).some(key => key.publicKey === value)) return OWN_KEYS.stranger.publicKey
  if (/^[0-9a-f]{64,}$/.test(value)) return (value.startsWith('a') ? 'b' : 'a') + value.slice(1)
  return value.endsWith('x') ? `${value.slice(0, -1)}y` : `${value.slice(0, -1)}x`
}
