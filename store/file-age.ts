// Owns: the age of the store file itself, whatever its log says: SQLite's file change counter, which only grows.
// Must never: be closed before the connection is. Closing any descriptor of the file drops SQLite's locks of this
// whole process.
// Source: sqlite.org/fileformat2.html §1.3.7 (bytes 24 to 27), sqlite.org/howtocorrupt.html §2.2.
import { closeSync, constants, fdatasyncSync, openSync, readSync } from 'node:fs'

const COUNTER_AT = 24
const COUNTER_BYTES = 4

export class FileAge {
  /** What the file said before a connection had a chance to empty its log into it. */
  readonly opened: number
  readonly #descriptor: number

  constructor(path: string) {
    this.#descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW)
    this.opened = this.read()
  }

  read(): number {
    const bytes = Buffer.alloc(COUNTER_BYTES)
    readSync(this.#descriptor, bytes, 0, COUNTER_BYTES, COUNTER_AT)
    return bytes.readUInt32BE()
  }

  /** An age that a power cut does not take back: whoever remembers it may refuse a younger file. */
  readDurable(): number {
    fdatasyncSync(this.#descriptor)
    return this.read()
  }

  close(): void {
    closeSync(this.#descriptor)
  }
}
