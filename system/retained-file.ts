// Owns: files that are kept: complete and on disk under their name, or not there at all.
// Must never: write into a file that already bears the name, or follow a link.
// Source: rename(2), fsync(2).
import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  fsync,
  fsyncSync,
  openSync,
  readSync,
  renameSync,
  type Stats,
  unlinkSync,
  write,
  writeSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { modeText, refused } from './custody-refusal.js'

const writeOffLoop = promisify(write)
const fsyncOffLoop = promisify(fsync)
const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW

export interface NamedBytes {
  readonly name: string
  readonly bytes: Uint8Array
}

/**
 * Puts the bytes under the name, replacing what was there, without blocking the event loop on the disk.
 * On disk, name included, when it resolves; after a failure the old file stands.
 */
export function retainFile(path: string, bytes: Uint8Array, mode: number): Promise<void> {
  return retainFiles(dirname(path), [{ name: basename(path), bytes }], mode)
}

/**
 * As `retainFile` for several files of one folder: written and synced beside each other, named in their order, and
 * the folder synced once for all names. Each is whole or as before; after a failure the first few may be new.
 */
export async function retainFiles(
  directory: string,
  files: readonly NamedBytes[],
  mode: number,
): Promise<void> {
  const written = files.map(({ name, bytes }) => ({
    path: join(directory, name),
    temporary: temporaryName(join(directory, name)),
    bytes,
  }))
  try {
    await settledAll(written.map(({ temporary, bytes }) => writeNewFile(temporary, bytes, mode)))
    for (const { path, temporary } of written) renameSync(temporary, path)
  } catch (error) {
    for (const { temporary } of written) unlinkIfThere(temporary)
    throw error
  }
  await syncFolder(directory)
}

/** The names in a folder are on disk when it resolves. */
export async function syncFolder(directory: string): Promise<void> {
  const descriptor = openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    await fsyncOffLoop(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/** Content and sync wait for the disk and leave the loop; the rest is a call into the page cache. */
async function writeNewFile(path: string, bytes: Uint8Array, mode: number): Promise<void> {
  const descriptor = openSync(path, NEW_FILE, mode)
  try {
    fchmodSync(descriptor, mode)
    for (let at = 0; at < bytes.length; ) {
      at += (await writeOffLoop(descriptor, bytes, at, bytes.length - at)).bytesWritten
    }
    await fsyncOffLoop(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/** Waits for all before the first fault is thrown: nothing is still written when the caller tidies. */
async function settledAll(writes: readonly Promise<void>[]): Promise<void> {
  await Promise.allSettled(writes)
  await Promise.all(writes)
}

function unlinkIfThere(path: string): void {
  try {
    unlinkSync(path)
  } catch {
    // It was renamed, or never made: the fault that is under way says more.
  }
}

/** As `retainFile`, in one synchronous run, for commands that do nothing else meanwhile. */
export function retainFileNow(path: string, bytes: Uint8Array, mode: number): void {
  const temporary = temporaryName(path)
  createFile(temporary, bytes, mode)
  try {
    renameSync(temporary, path)
  } catch (error) {
    unlinkSync(temporary)
    throw error
  }
  syncDirectory(dirname(path))
}

/** A new file, on disk, or EEXIST. What could not be finished is removed. */
export function createFile(path: string, bytes: Uint8Array, mode: number): void {
  const descriptor = openSync(path, NEW_FILE, mode)
  try {
    fchmodSync(descriptor, mode)
    writeAll(descriptor, bytes)
    fsyncSync(descriptor)
  } catch (error) {
    unlinkSync(path)
    // A write to what is open does not name its file.
    throw error instanceof Error ? Object.assign(error, { path }) : error
  } finally {
    closeSync(descriptor)
  }
  syncDirectory(dirname(path))
}

export interface RetainedFileRules {
  readonly maximumBytes: number
  /** One uid, or any of several. */
  readonly ownerUid: number | readonly number[]
  /** Mode bits that must not be set, 0o077 for a private file. */
  readonly forbiddenMode: number
}

/** Reads a file whose owner, mode and links are judged on the open descriptor. @throws BrokerError `custody`. */
export function readRetainedFile(path: string, rules: RetainedFileRules): Uint8Array {
  const descriptor = openNoLink(path)
  try {
    const stats = fstatSync(descriptor)
    assertRules(path, stats, rules)
    const bytes = new Uint8Array(stats.size)
    let length = 0
    while (length < bytes.length) {
      const count = readSync(descriptor, bytes, length, bytes.length - length, null)
      if (count === 0) throw refused(path, `${bytes.length} bytes`, `${length}`)
      length += count
    }
    return bytes
  } finally {
    closeSync(descriptor)
  }
}

function openNoLink(path: string): number {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ELOOP') throw error
    throw refused(path, 'a file', 'a symbolic link', error)
  }
}

function assertRules(path: string, stats: Stats, rules: RetainedFileRules): void {
  if (!stats.isFile()) throw refused(path, 'a regular file', 'another kind of file')
  const owners = [rules.ownerUid].flat()
  if (!owners.includes(stats.uid)) throw refused(path, `owner uid ${owners.join(' or ')}`, `${stats.uid}`)
  if ((stats.mode & rules.forbiddenMode) !== 0) {
    throw refused(path, `no mode bit of 0${rules.forbiddenMode.toString(8)}`, modeText(stats))
  }
  if (stats.nlink !== 1) throw refused(path, 'one link', `${stats.nlink}`)
  if (stats.size > rules.maximumBytes)
    throw refused(path, `at most ${rules.maximumBytes} bytes`, `${stats.size}`)
}

function temporaryName(path: string): string {
  return join(dirname(path), `.${basename(path)}.${randomBytes(8).toString('hex')}`)
}

function writeAll(descriptor: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at, bytes.length - at)
}

function syncDirectory(path: string): void {
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
