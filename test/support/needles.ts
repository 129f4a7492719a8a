// Owns the search for a secret in whatever form it could have been written down: plain, base64 at any alignment, hex,
// decimal bytes as our documents carry them. It says where and in which form, never the secret.
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

export type Needles = Readonly<Record<string, Buffer>>

/** Every form of a secret; base64 without the characters that a neighbour decides. */
export function needlesOf(secret: string): Needles {
  const bytes = Buffer.from(secret, 'utf8')
  const aligned = [0, 1, 2].map(shift => {
    const encoded = Buffer.concat([Buffer.alloc(shift), bytes])
      .toString('base64')
      .replaceAll('=', '')
    const whole = encoded.slice(Math.ceil((shift * 8) / 6), -1)
    return [`base64 at ${shift}`, Buffer.from(whole)] as const
  })
  return {
    plain: bytes,
    hex: Buffer.from(bytes.toString('hex')),
    'decimal bytes': Buffer.from([...bytes].join(',')),
    ...Object.fromEntries(aligned),
  }
}

/** The forms that occur in some bytes. */
export function formsIn(haystack: Uint8Array, needles: Needles): string[] {
  const bytes = Buffer.from(haystack)
  const urlSafe = Buffer.from(bytes.toString('latin1').replaceAll('-', '+').replaceAll('_', '/'), 'latin1')
  return Object.entries(needles)
    .filter(([, needle]) => bytes.includes(needle) || urlSafe.includes(needle))
    .map(([form]) => form)
}

/** Every file below a folder that holds one, as `path: form`. */
export function findInFiles(folder: string, needles: Needles): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map(path => join(folder, path))
    .filter(path => statSync(path, { throwIfNoEntry: false })?.isFile() === true)
    .flatMap(path => formsIn(readFileSync(path), needles).map(form => `${path}: ${form}`))
}

export interface ProcessWords {
  readonly pid: number
  readonly parent: number
  readonly environment: Buffer
  readonly command: Buffer
}

/** Environment and command line of every process that may be read; what may not be read is empty. */
export function processes(): ProcessWords[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number)
    .map(pid => ({
      pid,
      parent: Number(/^PPid:\s*(\d+)/m.exec(wordsOf(pid, 'status').toString())?.[1] ?? 0),
      environment: wordsOf(pid, 'environ'),
      command: wordsOf(pid, 'cmdline'),
    }))
}

/** These processes and everything that they started. */
export function descendants(roots: readonly number[], among = processes()): ProcessWords[] {
  const family = new Set(roots)
  for (let size = -1; size !== family.size; ) {
    size = family.size
    for (const { pid, parent } of among) if (family.has(parent)) family.add(pid)
  }
  return among.filter(({ pid }) => family.has(pid))
}

function wordsOf(pid: number, name: string): Buffer {
  try {
    return readFileSync(`/proc/${pid}/${name}`)
  } catch {
    return Buffer.alloc(0)
  }
}
