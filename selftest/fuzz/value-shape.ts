// Owns a short word for the form of a value, so that inputs of a new form are told from more of the same.

/** Kinds and the rough size of the outer levels. */
export function shapeOf(value: unknown, depth = 0): string {
  if (value === null) return '0'
  if (typeof value === 'string') return `s${magnitude(value.length)}`
  if (typeof value === 'number') return Number.isInteger(value) ? `i${magnitude(Math.abs(value))}` : 'f'
  if (typeof value !== 'object') return typeof value === 'boolean' ? 'b' : '?'
  if (value instanceof Uint8Array) return `y${magnitude(value.length)}`
  if (depth === 3) return Array.isArray(value) ? '[' : '{'
  const parts = Object.values(value)
    .slice(0, 8)
    .map(part => shapeOf(part, depth + 1))
  return Array.isArray(value) ? `[${parts.join('')}]` : `{${parts.join('')}}`
}

function magnitude(size: number): number {
  return size === 0 ? 0 : 1 + Math.floor(Math.log2(size) / 4)
}
