// The private journal: exact frames, which may hold sensitive content, encrypted under the host's own
// key; receipt and outcome in clear. Each file is durable before the result is used.
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import { lstatSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { canonicalBytes } from '../protocol/canonical.js'
import type { JsonValue } from '../protocol/json.js'
import { BrokerError } from '../protocol/errors.js'
import { modeText, refused } from '../system/custody-refusal.js'
import { retainFiles, syncFolder } from '../system/retained-file.js'

const MAGIC = Buffer.from('chio.host-journal.v1\n', 'latin1')
const NONCE_BYTES = 12
const TAG_BYTES = 16
/** A derived identifier; anything else could name another place. */
const ATTEMPT_ID = /^broker-attempt-[0-9a-f]{64}$/

/** Encrypted: the exact bytes may hold sensitive content. */
export type JournalFrame = 'request.frame' | 'response.frame'
/** In clear: digests and identifiers only. */
export type JournalDocument = 'outcome.json' | 'receipt.json' | 'registration.json'

export type JournalEntry =
  | { readonly name: JournalFrame; readonly frame: Uint8Array }
  | { readonly name: JournalDocument; readonly document: Uint8Array | JsonValue }

/** The journal of one attempt. */
export class Journal {
  readonly directory: string
  readonly #attemptId: string
  readonly #key: Uint8Array

  private constructor(directory: string, attemptId: string, key: Uint8Array) {
    this.directory = directory
    this.#attemptId = attemptId
    this.#key = key
  }

  /**
   * Makes the attempt's folder (0700) below the runs folder; it is on disk when this resolves.
   * @throws BrokerError `custody` when it is not this user's alone, `storage` when it cannot be made.
   */
  static async open(runsDirectory: string, attemptId: string, journalKey: Uint8Array): Promise<Journal> {
    if (!ATTEMPT_ID.test(attemptId)) throw refused('journal', 'a derived attempt id', 'another name')
    const directory = join(runsDirectory, attemptId)
    await makePrivateFolder(directory)
    return new Journal(directory, attemptId, journalKeyOf(journalKey, attemptId))
  }

  /** Retains one exact frame, encrypted. */
  retainFrame(name: JournalFrame, frame: Uint8Array): Promise<void> {
    return this.retain({ name, frame })
  }

  /** Retains one document in clear: it holds digests and identifiers only. */
  retainDocument(name: JournalDocument, document: Uint8Array | JsonValue): Promise<void> {
    return this.retain({ name, document })
  }

  /** Retains several, named in their order; all are on disk when it resolves. */
  async retain(...entries: readonly JournalEntry[]): Promise<void> {
    const files = entries.map(entry => ({ name: entry.name, bytes: this.#bytesOf(entry) }))
    await onDisk(this.directory, () => retainFiles(this.directory, files, 0o600))
  }

  #bytesOf(entry: JournalEntry): Uint8Array {
    if ('frame' in entry) return seal(entry.frame, this.#key, `${this.#attemptId}/${entry.name}`)
    const { document } = entry
    const bytes = document instanceof Uint8Array ? document : canonicalBytes(document)
    return Buffer.concat([bytes, Buffer.from('\n')])
  }
}

async function makePrivateFolder(directory: string): Promise<void> {
  await onDisk(directory, async () => makeUnlessThere(directory))
  const stats = lstatSync(directory)
  if (!stats.isDirectory()) throw refused(directory, 'a folder', 'another kind of file')
  if (stats.uid !== process.geteuid?.()) throw refused(directory, 'a folder of this user', `uid ${stats.uid}`)
  if ((stats.mode & 0o077) !== 0) throw refused(directory, 'mode 0700', modeText(stats))
  // The name of the attempt's folder must survive as well as what is in it.
  await onDisk(dirname(directory), () => syncFolder(dirname(directory)))
}

function makeUnlessThere(directory: string): void {
  try {
    mkdirSync(directory, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

async function onDisk(path: string, write: () => Promise<unknown>): Promise<void> {
  try {
    await write()
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? 'a fault'
    throw new BrokerError('storage', `journal refused: expected ${path} on disk, got ${code}`, { cause })
  }
}

function journalKeyOf(journalKey: Uint8Array, attemptId: string): Uint8Array {
  return new Uint8Array(
    hkdfSync('sha256', journalKey, new Uint8Array(0), `chio.host-journal.v1\0${attemptId}`, 32),
  )
}

function seal(plain: Uint8Array, key: Uint8Array, place: string): Uint8Array {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv('chacha20-poly1305', key, nonce, { authTagLength: TAG_BYTES })
  cipher.setAAD(Buffer.from(place, 'utf8'), { plaintextLength: plain.length })
  return Buffer.concat([MAGIC, nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()])
}

/**
 * Decrypts a retained frame for its owner.
 * @throws BrokerError `custody` when key, place or bytes are not the ones it was sealed with.
 */
export function openJournalFrame(
  sealed: Uint8Array,
  journalKey: Uint8Array,
  attemptId: string,
  name: string,
): Uint8Array {
  const bytes = Buffer.from(sealed)
  const start = MAGIC.length + NONCE_BYTES
  if (bytes.length < start + TAG_BYTES || !bytes.subarray(0, MAGIC.length).equals(MAGIC))
    throw unreadable(name)
  const nonce = bytes.subarray(MAGIC.length, start)
  const key = journalKeyOf(journalKey, attemptId)
  const cipher = createDecipheriv('chacha20-poly1305', key, nonce, { authTagLength: TAG_BYTES })
  const content = bytes.subarray(start, bytes.length - TAG_BYTES)
  cipher.setAAD(Buffer.from(`${attemptId}/${name}`, 'utf8'), { plaintextLength: content.length })
  cipher.setAuthTag(bytes.subarray(bytes.length - TAG_BYTES))
  try {
    return Buffer.concat([cipher.update(content), cipher.final()])
  } catch (cause) {
    throw unreadable(name, cause)
  }
}

function unreadable(name: string, cause?: unknown): BrokerError {
  return new BrokerError(
    'custody',
    `journal ${name} refused: expected bytes sealed under this host's journal key, got others`,
    { cause },
  )
}
