// Owns a reviewer's note: what of a file is one, and what is said of an appended one.
// Must never: cut a note, or repair what is no UTF-8. Source: 1 to 4,096 bytes of UTF-8, counted in bytes.
import { closeSync, openSync, readSync } from 'node:fs'
import { digest, type Infer, object, text } from '../../protocol/codec.js'
import { sha256Hex } from '../../protocol/digest.js'
import { BrokerError } from '../../protocol/errors.js'

export const MAXIMUM_NOTE_BYTES = 4_096

/** The arguments of `append`. */
export const NoteArguments = object({ note: text({ maxBytes: MAXIMUM_NOTE_BYTES, minBytes: 1 }) })
export type NoteArguments = Infer<typeof NoteArguments>

/** What the executor observed of an append, and what its line of the journal says. */
export const AppendedNote = object({
  note: text({ maxBytes: MAXIMUM_NOTE_BYTES, minBytes: 1 }),
  operation_id: digest(),
  sha256: digest(),
})
export type AppendedNote = Infer<typeof AppendedNote>

export function appendedNote(note: string, operationId: string): AppendedNote {
  return { note, operation_id: operationId, sha256: sha256Hex(Buffer.from(note, 'utf8')) }
}

/** Reads a note. @throws BrokerError `invalid_request` for an empty one, one over its bound, or bytes that are no UTF-8. */
export function readNote(path: string): string {
  const bytes = readAtMost(path, MAXIMUM_NOTE_BYTES + 1)
  if (bytes.length === 0) throw refused('1 byte or more', 'none')
  if (bytes.length > MAXIMUM_NOTE_BYTES) throw refused(`at most ${MAXIMUM_NOTE_BYTES} bytes`, 'more')
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch (cause) {
    throw refused('UTF-8', 'bytes that are none', cause)
  }
}

function refused(expected: string, got: string, cause?: unknown): BrokerError {
  return new BrokerError('invalid_request', `note refused: expected ${expected}, got ${got}`, { cause })
}

/** A pipe may be longer than it says, and come in pieces. */
function readAtMost(path: string, maximumBytes: number): Uint8Array {
  const buffer = Buffer.alloc(maximumBytes)
  const descriptor = openSync(path, 'r')
  try {
    let length = 0
    while (length < maximumBytes) {
      const count = readSync(descriptor, buffer, length, maximumBytes - length, null)
      if (count === 0) break
      length += count
    }
    return buffer.subarray(0, length)
  } finally {
    closeSync(descriptor)
  }
}
