// Owns: the signed head of the kernel's store: judged before the store is opened, signed in every commit, written beside
// the database after it.
// Must never: let a second commit begin while the head of the one before it is not written: within a boot the database
// is at most one commit ahead, so one that is further ahead is below a head that was put back.
// Source: the rollback anchor of the admission store; pwrite(2), of one sector, into the page cache.
import { closeSync, constants, fdatasyncSync, fstatSync, openSync, readSync, writeSync } from 'node:fs'
import { toHex } from '../../protocol/digest.js'
import { BrokerError } from '../../protocol/errors.js'
import {
  headRefusal,
  KERNEL_HEAD_BYTES,
  KERNEL_HEAD_SCHEMA,
  type KernelHeadBody,
  readKernelHead,
  signKernelHead,
} from '../../protocol/kernel-head.js'
import type { SigningKey } from '../../protocol/keys.js'
import type { CommitWitness, RowReader } from '../../store/commit-witness.js'
import { exists } from '../../store/file-custody.js'
import type { Cutpoint } from '../../store/store.js'
import { diskFault } from '../../store/sql-error.js'
import { createFile } from '../../system/retained-file.js'

const PRIVATE_MODE = 0o600

export interface SignedHeadParts {
  /** Of the head, beside the store. */
  readonly path: string
  readonly bootId: string
  readonly key: SigningKey
  readonly atCutpoint: Cutpoint
}

/** Where a store's log and its commits stand. */
type Standing = Pick<KernelHeadBody, 'commitIndex' | 'entries' | 'lastLeaf'>

const INDEX_SQL = 'SELECT commit_index AS n FROM kernel_state'
const LAST_SQL =
  'SELECT entry_seq AS entries, leaf_hash AS leaf FROM receipts ORDER BY entry_seq DESC LIMIT 1'
const LEAF_SQL = 'SELECT leaf_hash AS leaf FROM receipts WHERE entry_seq = ?'

/** Where the head of a store lies. */
export function headPathOf(storePath: string): string {
  return storePath.replace(/\.db$/, '') + '.head'
}

export class SignedHead implements CommitWitness {
  readonly #parts: SignedHeadParts
  #storeId = ''
  #descriptor: number | undefined
  /** What the next commit makes true, and then: what is not written yet. */
  #next: Uint8Array | undefined
  #nextIndex = 0
  #writtenIndex = 0
  #unwritten: Uint8Array | undefined

  constructor(parts: SignedHeadParts) {
    this.#parts = parts
  }

  /** @throws BrokerError `store_replaced` for an older store, `store_head_refused` for a head that is not its own. */
  assertNewest(reader: RowReader, storeId: string): void {
    const { path, key } = this.#parts
    this.#storeId = storeId
    const standing = standingOf(reader)
    this.#nextIndex = standing.commitIndex
    if (!exists(path)) {
      // Nothing was decided in it: its first owner makes the head, before its first commit.
      if (standing.commitIndex === 0) return
      throw headRefusal(path, `the head of a store of ${standing.commitIndex} commits`, 'none')
    }
    this.#descriptor = openHead(path)
    const head = readKernelHead(readWhole(this.#descriptor), key.publicKey, path)
    if (head.storeId !== storeId)
      throw headRefusal(path, `the head of store ${storeId}`, `one of ${head.storeId}`)
    this.#assertContinues(reader, head, standing)
    this.#writtenIndex = head.commitIndex
  }

  /** Writes the head of the store as it stands: the first one, or one that a kill kept back. */
  begin(reader: RowReader): void {
    const { path } = this.#parts
    const bytes = this.#signed(standingOf(reader))
    if (this.#descriptor === undefined) {
      createFile(path, bytes, PRIVATE_MODE)
      this.#descriptor = openHead(path)
    } else this.#write(bytes)
    this.#writtenIndex = this.#nextIndex
  }

  prepare(reader: RowReader): void {
    if (this.#unwritten !== undefined) this.#write(this.#unwritten)
    this.#unwritten = undefined
    this.#next = this.#signed(standingOf(reader))
  }

  committed(): void {
    const bytes = this.#next
    this.#next = undefined
    // Openings and checkpoints of the store take no commit index.
    if (bytes === undefined || this.#nextIndex === this.#writtenIndex) return
    this.#unwritten = bytes
    this.#parts.atCutpoint('head_written:before_commit')
    try {
      this.#write(bytes)
      this.#unwritten = undefined
      this.#writtenIndex = this.#nextIndex
    } catch {
      // The commit stays; the next one writes this head first, or is refused.
    }
  }

  /** The end of an owner is durable: a power cut later takes nothing from its head. */
  close(): void {
    const descriptor = this.#descriptor
    this.#descriptor = undefined
    if (descriptor === undefined) return
    try {
      if (this.#unwritten !== undefined) writeHead(descriptor, this.#unwritten)
      fdatasyncSync(descriptor)
    } catch {
      // A head that is behind is rolled forward; the store itself is on disk.
    } finally {
      closeSync(descriptor)
    }
  }

  #assertContinues(reader: RowReader, head: KernelHeadBody, standing: Standing): void {
    const { bootId, path } = this.#parts
    const ahead = standing.commitIndex - head.commitIndex
    if (ahead < 0) throw older(path, head.commitIndex, standing.commitIndex)
    const isKept =
      ahead === 0
        ? standing.entries === head.entries && standing.lastLeaf === head.lastLeaf
        : leafAt(reader, head.entries) === head.lastLeaf
    if (!isKept)
      throw headRefusal(path, `a store whose log has the signed entry ${head.entries}`, 'another log')
    if (ahead > 1 && head.bootId === bootId) {
      throw headRefusal(
        path,
        `the head of commit ${standing.commitIndex} or of the one before`,
        `that of ${head.commitIndex}`,
      )
    }
  }

  #signed(standing: Standing): Uint8Array {
    this.#nextIndex = standing.commitIndex
    const { bootId, key } = this.#parts
    return signKernelHead({ ...standing, bootId, schema: KERNEL_HEAD_SCHEMA, storeId: this.#storeId }, key)
  }

  #write(bytes: Uint8Array): void {
    try {
      writeHead(this.#descriptor ?? -1, bytes)
    } catch (error) {
      throw diskFault(error, `store head ${this.#parts.path}`, 'not_started')
    }
  }
}

function standingOf(reader: RowReader): Standing {
  const commitIndex = reader.get<{ n: number }>(INDEX_SQL)?.n ?? 0
  const last = reader.get<{ entries: number; leaf: Uint8Array }>(LAST_SQL)
  return { commitIndex, entries: last?.entries ?? 0, lastLeaf: last === undefined ? null : toHex(last.leaf) }
}

function leafAt(reader: RowReader, entry: number): string | null {
  const row = reader.get<{ leaf: Uint8Array }>(LEAF_SQL, entry)
  return row === undefined ? null : toHex(row.leaf)
}

const FILE_RULE = 'a regular file of our uid, mode 0600, one link'

function openHead(path: string): number {
  let descriptor: number
  try {
    descriptor = openSync(path, constants.O_RDWR | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (error) {
    throw headRefusal(path, FILE_RULE, (error as NodeJS.ErrnoException).code ?? 'a fault')
  }
  const stats = fstatSync(descriptor)
  const isPrivate = stats.isFile() && stats.nlink === 1 && (stats.mode & 0o7777) === PRIVATE_MODE
  if (isPrivate && stats.uid === process.geteuid?.()) return descriptor
  closeSync(descriptor)
  throw headRefusal(path, FILE_RULE, 'another')
}

/** In place: the file keeps its one block, so that a full disk cannot stop it. */
function writeHead(descriptor: number, bytes: Uint8Array): void {
  const written = writeSync(descriptor, bytes, 0, bytes.length, 0)
  if (written !== bytes.length)
    throw Object.assign(new Error('short write'), { code: 'EIO', syscall: 'write' })
}

/** One byte more than a head has: a longer file is none. */
function readWhole(descriptor: number): Uint8Array {
  const bytes = Buffer.alloc(KERNEL_HEAD_BYTES + 1)
  return bytes.subarray(0, readSync(descriptor, bytes, 0, bytes.length, 0))
}

function older(path: string, expected: number, got: number): BrokerError {
  return new BrokerError(
    'store_replaced',
    `store refused: expected commit ${expected} or later, which the signed head ${path} names, got ${got}; an older copy was put back: restore the newest store, its log and its head together`,
    { outcome: 'not_started' },
  )
}
