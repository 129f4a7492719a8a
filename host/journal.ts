// The private journal: exact frames, which may hold sensitive content, encrypted under the host's own
// key; receipt and outcome in clear. Each file is durable before the result is used.
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { canonicalBytes } from '../protocol/canonical.js'
import type { JsonValue } from '../protocol/json.js'
import { BrokerError } from '../protocol/errors.js'
import { retainFile } from '../system/retained-file.js'

const MAGIC = Buffer.from('chio.host-journal.v1\n', 'latin1')
const NONCE_BYTES = 12
const TAG_BYTES = 16

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

  /** Makes the attempt's folder (0700) below the runs folder. */
  static async open(runsDirectory: string, attemptId: string, journalKey: Uint8Array): Promise<Journal> {
    const directory = join(runsDirectory, attemptId)
    await mkdir(directory, { recursive: true, mode: 0o700 })
    return new Journal(directory, attemptId, journalKeyOf(journalKey, attemptId))
  }

  /** Retains one exact frame, encrypted. */
  async retainFrame(name: 'request.frame' | 'response.frame', frame: Uint8Array): Promise<void> {
    await retainFile(join(this.directory, name), seal(frame, this.#key, `${this.#attemptId}/${name}`), 0o600)
  }

  /** Retains one document in clear: it holds digests and identifiers only. */
  async retainDocument(
    name: 'receipt.json' | 'outcome.json',
    document: Uint8Array | JsonValue,
  ): Promise<void> {
    const bytes = document instanceof Uint8Array ? document : canonicalBytes(document)
    await retainFile(join(this.directory, name), Buffer.concat([bytes, Buffer.from('\n')]), 0o600)
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
    `journal ${name} refused: expected bytes sealed under this host's journal key`,
    { cause },
  )
}
