// Owns: giving what root made to other uids: folders and files are made as ours first and handed over at the end,
// innermost first, so that nobody else can enter a folder while root still works in it.
// Must never: follow a link, or make or hand over anything inside a folder that is another uid's.
// Source: lchown(2), mkdir(2), path_resolution(7).
import { chmodSync, lchownSync, lstatSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { refused } from './custody-refusal.js'
import type { Identity } from './identities.js'

const PRIVATE_FOLDER = 0o700

interface Promised {
  readonly path: string
  readonly owner: Identity
  /** Null for a file: it was made with its mode. */
  readonly folderMode: number | null
}

export class Handover {
  readonly #promised: Promised[] = []

  /**
   * Makes a folder that nobody but us can enter, or takes one that stands.
   * @throws BrokerError `custody` when another kind of file stands there, or its parent is neither ours nor root's.
   */
  folder(path: string, owner: Identity, mode: number): void {
    mkdirSync(dirname(path), { recursive: true, mode: PRIVATE_FOLDER })
    assertOurs(dirname(path))
    const stats = lstatSync(path, { throwIfNoEntry: false })
    if (stats === undefined) mkdirSync(path, { mode: PRIVATE_FOLDER })
    else if (!stats.isDirectory()) throw refused(path, 'nothing or a directory', 'another kind of file')
    this.#promised.push({ path, owner, folderMode: mode })
  }

  /** A file that is about to be made. @throws BrokerError `custody` when its folder is neither ours nor root's. */
  file(path: string, owner: Identity): void {
    assertOurs(dirname(path))
    this.#promised.push({ path, owner, folderMode: null })
  }

  /** Hands everything over, the last promised first: what stands inside is given away before what holds it. */
  complete(): void {
    for (const { path, owner, folderMode } of this.#promised.splice(0).reverse()) {
      if (folderMode !== null) chmodSync(path, folderMode)
      if (process.geteuid?.() === 0) lchownSync(path, owner.uid, owner.gid)
    }
  }
}

/** Judged before every use: in a folder of ours, or of root's, nobody else puts a link in our way. */
function assertOurs(folder: string): void {
  const stats = lstatSync(folder)
  const owners = [...new Set([0, process.geteuid?.() ?? 0])]
  if (stats.isDirectory() && owners.includes(stats.uid)) return
  const got = stats.isDirectory() ? `one of uid ${stats.uid}` : 'another kind of file'
  throw refused(folder, `a directory of uid ${owners.join(' or ')}`, `${got}; remove what a failed init left`)
}
