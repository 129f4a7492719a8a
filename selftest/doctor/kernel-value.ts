// One value that the kernel shows below /proc or /sys. A file that is not there is an answer of its own: the
// kernel was built without it, or what it would restrict does not exist.
import { readFileSync } from 'node:fs'

/** @returns the text without its outer spaces; null when there is no such file, or we may not read it. */
export function kernelText(path: string): string | null {
  try {
    return readFileSync(path, 'latin1').trim()
  } catch {
    return null
  }
}

/** @returns the number; null when there is none. */
export function kernelNumber(path: string): number | null {
  const text = kernelText(path)
  return text !== null && /^-?\d+$/.test(text) ? Number(text) : null
}
