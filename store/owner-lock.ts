// Owns: `owner.lock`, the flock that decides which process serves the stores of a directory. Held until release
// or death; the file itself stays, because removing it would let two processes lock two inodes.
// Must never: judge by the pid written inside. It only names the holder to a human. The note beside it belongs to
// the store that was served last (store-head.ts).
// Source: flock(2).
import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { lockFile } from '../native/index.js'
import { type Clock, NS_PER_MS } from '../protocol/clock.js'
import { BrokerError } from '../protocol/errors.js'
import { diskFault } from './sql-error.js'

/** Fixed width, so that writing it anew needs no truncation and no new block of a full disk. */
const PID_TEXT_BYTES = 16
const NOTE_TEXT_BYTES = 48
/** The disk's word, not the file's. */
const DISK_CODES: ReadonlySet<string> = new Set(['EROFS', 'ENOSPC', 'EDQUOT', 'EIO'])
const RETRY_MS = 50

export interface OwnerLock {
  /** What the last owner noted, or an empty text. */
  readNote(): string
  writeNote(note: string): void
  /** Gives the lock back. Safe to repeat. */
  release(): void
}

export interface OwnerLockOptions {
  readonly clock: Clock
  /** How long to wait for another holder; 0 refuses at once. */
  readonly ownerWaitMs?: number
}

/** @throws BrokerError `another_instance` when another process holds the lock past the wait. */
export async function takeOwnerLock(storePath: string, options: OwnerLockOptions): Promise<OwnerLock> {
  const path = join(dirname(storePath), 'owner.lock')
  const untilBootNs = options.clock.bootNs() + BigInt(options.ownerWaitMs ?? 0) * NS_PER_MS
  for (;;) {
    const descriptor = tryLock(path)
    if (descriptor !== undefined) return heldLock(descriptor)
    if (options.clock.bootNs() >= untilBootNs) throw served(path)
    await delay(RETRY_MS)
  }
}

/** @returns the locked descriptor, or undefined while another process holds the lock. */
function tryLock(path: string): number | undefined {
  try {
    return lockFile(path)
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if (code === 'EWOULDBLOCK' || code === 'EAGAIN') return undefined
    if (code !== undefined && DISK_CODES.has(code))
      throw diskFault(error, `owner lock ${path}`, 'not_started')
    throw new BrokerError(
      'storage',
      `owner lock ${path} refused: expected a regular file of our uid, mode 0600, one link, got ${code}`,
      { outcome: 'not_started', cause: error },
    )
  }
}

function heldLock(descriptor: number): OwnerLock {
  writeText(descriptor, `${process.pid}`.padEnd(PID_TEXT_BYTES - 1) + '\n', 0)
  let released = false
  return {
    readNote() {
      const text = Buffer.alloc(NOTE_TEXT_BYTES)
      const length = readSync(descriptor, text, 0, NOTE_TEXT_BYTES, PID_TEXT_BYTES)
      return text.toString('latin1', 0, length).trim()
    },
    writeNote(note) {
      if (!released) writeText(descriptor, note.padEnd(NOTE_TEXT_BYTES - 1) + '\n', PID_TEXT_BYTES)
    },
    release() {
      if (released) return
      released = true
      closeSync(descriptor)
    },
  }
}

/** What stops this write, a full disk for one, does not stop the owner: the lock is the flock, not its text. */
function writeText(descriptor: number, text: string, at: number): void {
  try {
    writeSync(descriptor, text, at, 'latin1')
  } catch {
    return
  }
}

function served(path: string): BrokerError {
  return new BrokerError(
    'another_instance',
    `store refused: expected ${path} to be free, got a lock held by pid ${holderPid(path)}; stop that process or wait`,
    { outcome: 'not_started' },
  )
}

function holderPid(path: string): string {
  const text = Buffer.alloc(PID_TEXT_BYTES)
  try {
    const descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    try {
      readSync(descriptor, text, 0, PID_TEXT_BYTES, 0)
    } finally {
      closeSync(descriptor)
    }
  } catch {
    return 'unknown'
  }
  return /^[1-9][0-9]{0,9}(?=\s)/.exec(text.toString('latin1'))?.[0] ?? 'unknown'
}
