/**
 * How a file gets into the cage: bound by its path where the cage's uid can reach it, else opened here and copied
 * in by bwrap from that descriptor. Opens read-only and follows what the operator named; never writes.
 * Source: bwrap(1) --ro-bind-data; path_resolution(7).
 */
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readlinkSync,
  realpathSync,
  statSync,
  type Stats,
} from 'node:fs'
import { dirname } from 'node:path'
import { nativePath } from '../native/index.js'
import { FIRST_DATA_FD, HELPER_AT, givenTool, isInView, type HostView, type Placement } from './plan.js'
import type { OwnedDescriptors } from './owned-descriptors.js'
import type { CageIdentity, CagePolicy, GivenFile } from './policy.js'
import { refusedBy, refusedCheck } from './refusal.js'

const READ_SEARCH = 5
const SEARCH = 1

function permits(stats: Stats, identity: CageIdentity, wanted: number): boolean {
  const shift = stats.uid === identity.uid ? 6 : stats.gid === identity.gid ? 3 : 0
  return ((stats.mode >> shift) & wanted) === wanted
}

/** By mode bits alone, of a path without links. Where an access list says otherwise the cage says that it failed. */
function isReachable(realPath: string, identity: CageIdentity): boolean {
  if (!permits(statSync(realPath), identity, READ_SEARCH)) return false
  for (let folder = dirname(realPath); ; folder = dirname(folder)) {
    if (!permits(statSync(folder), identity, SEARCH)) return false
    if (folder === '/') return true
  }
}

function openGiven(source: string): number {
  const fd = openSync(source, constants.O_RDONLY | constants.O_NOCTTY | constants.O_NONBLOCK)
  if (fstatSync(fd).isFile()) return fd
  closeSync(fd)
  throw refusedCheck('given file', `a regular file at ${source}`, 'something else')
}

/** Everything that is not in the view already: the helper, the tool, the files of the policy. */
function wantedFiles(policy: CagePolicy, view: HostView): GivenFile[] {
  const tool = isInView(policy.tool.path, policy, view) ? [] : [givenTool(policy.tool.path)]
  return [{ source: nativePath('cage-init'), at: HELPER_AT }, ...tool, ...policy.files]
}

/**
 * Where each file comes from; those that are copied in are open in `made`, in the order of the child's descriptors
 * from FIRST_DATA_FD on.
 * @throws CageRefusal when a file is missing or no regular file
 */
export function placeFiles(
  policy: CagePolicy,
  view: HostView,
  identity: CageIdentity,
  made: OwnedDescriptors,
): { placements: Placement[]; given: number[] } {
  const given: number[] = []
  const place = (file: GivenFile): Placement => {
    const source = realpathSync(file.source)
    if (isReachable(source, identity)) return { at: file.at, from: { path: source } }
    given.push(made.own(openGiven(source)))
    return { at: file.at, from: { descriptor: FIRST_DATA_FD + given.length - 1 } }
  }
  try {
    return { placements: wantedFiles(policy, view).map(place), given }
  } catch (error) {
    throw refusedBy(error, 'given file')
  }
}

/** /bin, /lib and their like: links into /usr on a merged system, folders of their own elsewhere. */
export function readHostView(): HostView {
  const links: { at: string; target: string }[] = []
  const folders: string[] = []
  for (const at of ['/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32']) {
    const stats = lstatSync(at, { throwIfNoEntry: false })
    if (stats?.isSymbolicLink() === true) links.push({ at, target: readlinkSync(at) })
    else if (stats?.isDirectory() === true) folders.push(at)
  }
  return { links, folders }
}
