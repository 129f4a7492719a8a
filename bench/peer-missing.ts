// Owns the one honest answer where a rival is not on this machine and could not be put there: a sentence.
import { join } from 'node:path'
import { packageRoot } from '../native/index.js'

export class PeerMissing extends Error {}

/** Where rivals are installed: a folder that is never committed and that nothing else uses. */
export function peerFolder(name: string): string {
  return join(packageRoot(), 'bench', 'peers', name)
}

/** The last line that a failed command said, or its own message. */
export function lastWords(error: unknown): string {
  const said = (error as { stderr?: unknown }).stderr
  const text =
    said instanceof Uint8Array || typeof said === 'string' ? Buffer.from(said).toString('utf8') : ''
  const lines = text.trim().split('\n').filter(Boolean)
  return lines.at(-1) ?? (error instanceof Error ? error.message : 'unknown fault')
}
