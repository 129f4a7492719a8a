// The journal of an attempt as an earlier process left it: read back, and completed with what that process did not
// live to retain. A file that stands is never replaced.
import { lstat, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { JsonValue } from '../protocol/json.js'
import { BrokerError } from '../protocol/errors.js'
import { Journal, type JournalDocument, type JournalFrame, openJournalFrame } from './journal.js'
import type { HostSession } from './session.js'

export class RetainedJournal {
  readonly #attemptId: string
  readonly #journal: Journal
  readonly #journalKey: Uint8Array

  private constructor(journal: Journal, attemptId: string, journalKey: Uint8Array) {
    this.#journal = journal
    this.#attemptId = attemptId
    this.#journalKey = journalKey
  }

  /** @throws BrokerError `custody` when this host never prepared the attempt. */
  static async open(session: HostSession, attemptId: string): Promise<RetainedJournal> {
    const { journalKey, runsDirectory } = session
    const directory = join(runsDirectory, attemptId)
    if (!(await exists(directory))) {
      throw new BrokerError(
        'custody',
        `journal refused: expected ${directory}, which the host that prepares an attempt makes, got none`,
      )
    }
    return new RetainedJournal(
      await Journal.open(runsDirectory, attemptId, journalKey),
      attemptId,
      journalKey,
    )
  }

  get directory(): string {
    return this.#journal.directory
  }

  async readFrame(name: JournalFrame): Promise<Uint8Array> {
    return openJournalFrame(await this.#read(name), this.#journalKey, this.#attemptId, name)
  }

  /** The canonical bytes of a document, without the newline that ends its file. */
  async readDocument(name: JournalDocument): Promise<Uint8Array> {
    return (await this.#read(name)).subarray(0, -1)
  }

  async completeFrame(name: JournalFrame, frame: Uint8Array): Promise<void> {
    if (!(await exists(join(this.directory, name)))) await this.#journal.retainFrame(name, frame)
  }

  async completeDocument(name: JournalDocument, document: Uint8Array | JsonValue): Promise<void> {
    if (!(await exists(join(this.directory, name)))) await this.#journal.retainDocument(name, document)
  }

  async #read(name: string): Promise<Uint8Array> {
    const path = join(this.directory, name)
    try {
      return await readFile(path)
    } catch (cause) {
      const code = (cause as NodeJS.ErrnoException).code ?? 'a fault'
      throw new BrokerError('custody', `journal refused: expected ${path}, got ${code}`, { cause })
    }
  }
}

async function exists(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  )
}
