// Owns Merkle trees over an append-only log: leaf and node hashes, roots, audit paths, consistency paths, and the
// frontier that lets a log grow without being read again. Must never hash a leaf as a node: the first byte differs.
// Source: RFC 6962 section 2.1; the checks of paths are those of RFC 9162 sections 2.1.3.2 and 2.1.4.2.
import { sha256 } from './digest.js'
import { BrokerError } from './errors.js'

export const HASH_BYTES = 32
const LEAF = Uint8Array.of(0)
const NODE = Uint8Array.of(1)

/** The hash of one entry of a log. */
export function leafHash(entry: Uint8Array): Uint8Array {
  return sha256(LEAF, entry)
}

export function nodeHash(left: Uint8Array, right: Uint8Array): Uint8Array {
  return sha256(NODE, left, right)
}

/** @throws RangeError for an empty tree, which has no root. */
export function merkleRoot(leaves: readonly Uint8Array[]): Uint8Array {
  assertSize('leaves', leaves.length)
  const [only] = leaves
  if (leaves.length === 1) return only as Uint8Array
  const split = largestPowerBelow(leaves.length)
  return nodeHash(merkleRoot(leaves.slice(0, split)), merkleRoot(leaves.slice(split)))
}

/** Siblings from the leaf upward; a level whose last node is carried up has none. */
export function auditPath(leaves: readonly Uint8Array[], index: number): Uint8Array[] {
  if (!Number.isInteger(index) || index < 0 || index >= leaves.length) {
    throw new RangeError(`"index" expected a leaf of ${leaves.length}, got ${index}`)
  }
  if (leaves.length === 1) return []
  const split = largestPowerBelow(leaves.length)
  const [left, right] = [leaves.slice(0, split), leaves.slice(split)]
  return index < split
    ? [...auditPath(left, index), merkleRoot(right)]
    : [...auditPath(right, index - split), merkleRoot(left)]
}

export interface LeafPlace {
  readonly leaf: Uint8Array
  readonly index: number
  readonly size: number
}

/**
 * The root that a path leads to.
 * @throws BrokerError `log_refused` when siblings are missing or left over, or the place is outside of the tree.
 */
export function rootOfPath({ index, leaf, size }: LeafPlace, path: readonly Uint8Array[]): Uint8Array {
  if (index < 0 || index >= size) refuse('a leaf index below the tree size', `${index} of ${size}`)
  let root = leaf
  let at = index
  let last = size - 1
  for (const sibling of path) {
    if (last === 0) refuse('no sibling above the root', 'one left over')
    if (at % 2 === 1 || at === last) {
      root = nodeHash(sibling, root)
      while (at % 2 === 0 && at !== 0) [at, last] = [half(at), half(last)]
    } else root = nodeHash(root, sibling)
    ;[at, last] = [half(at), half(last)]
  }
  if (last !== 0) refuse('a sibling for every level', 'one too few')
  return root
}

/** The nodes that prove the tree of the first `fromSize` leaves to be the beginning of the whole one. */
export function consistencyPath(leaves: readonly Uint8Array[], fromSize: number): Uint8Array[] {
  if (!Number.isInteger(fromSize) || fromSize < 1 || fromSize > leaves.length) {
    throw new RangeError(`"fromSize" expected 1 to ${leaves.length}, got ${fromSize}`)
  }
  return subproof(leaves, fromSize, true)
}

/** @param isWhole whether the first tree is known by its root already, which then needs not be told. */
function subproof(leaves: readonly Uint8Array[], fromSize: number, isWhole: boolean): Uint8Array[] {
  if (fromSize === leaves.length) return isWhole ? [] : [merkleRoot(leaves)]
  const split = largestPowerBelow(leaves.length)
  const [left, right] = [leaves.slice(0, split), leaves.slice(split)]
  return fromSize <= split
    ? [...subproof(left, fromSize, isWhole), merkleRoot(right)]
    : [...subproof(right, fromSize - split, false), merkleRoot(left)]
}

export interface TreeHead {
  readonly size: number
  readonly root: Uint8Array
}

/** Whether the first tree is the beginning of the second. Says nothing about who made either. */
export function isConsistent(from: TreeHead, to: TreeHead, path: readonly Uint8Array[]): boolean {
  if (from.size < 1 || from.size > to.size) return false
  if (from.size === to.size) return path.length === 0 && isSame(from.root, to.root)
  const roots = rootsOfPath(from, to.size, path)
  return roots !== undefined && isSame(roots.from, from.root) && isSame(roots.to, to.root)
}

/** Both roots, built from one path: RFC 9162 section 2.1.4.2. */
function rootsOfPath(from: TreeHead, toSize: number, path: readonly Uint8Array[]) {
  // A whole power of two is a node of the later tree itself, and is left out of the path.
  const nodes = isPowerOfTwo(from.size) ? [from.root, ...path] : [...path]
  let [at, last] = [from.size - 1, toSize - 1]
  while (at % 2 === 1) [at, last] = [half(at), half(last)]
  const first = nodes.shift()
  if (first === undefined) return undefined
  const roots = { from: first, to: first }
  for (const node of nodes) {
    if (last === 0) return undefined
    if (at % 2 === 1 || at === last) {
      roots.from = nodeHash(node, roots.from)
      roots.to = nodeHash(node, roots.to)
      while (at % 2 === 0 && at !== 0) [at, last] = [half(at), half(last)]
    } else roots.to = nodeHash(roots.to, node)
    ;[at, last] = [half(at), half(last)]
  }
  return last === 0 ? roots : undefined
}

/**
 * The roots of the full subtrees of a tree, largest first: one for every bit of its size. All that is needed to add a
 * leaf and to name the root.
 */
export type Frontier = readonly Uint8Array[]

/** @param size leaves before this one. */
export function grownFrontier(frontier: Frontier, size: number, leaf: Uint8Array): Frontier {
  const grown = [...frontier]
  let node = leaf
  for (let at = size; at % 2 === 1; at = half(at)) node = nodeHash(grown.pop() as Uint8Array, node)
  return [...grown, node]
}

/** @throws RangeError for an empty tree. */
export function rootOfFrontier(frontier: Frontier): Uint8Array {
  assertSize('frontier', frontier.length)
  return frontier.reduceRight((right, left) => nodeHash(left, right))
}

function largestPowerBelow(size: number): number {
  return 2 ** Math.floor(Math.log2(size - 1))
}

/** Not a shift: sizes may pass 2^31. */
function half(value: number): number {
  return Math.floor(value / 2)
}

function isPowerOfTwo(size: number): boolean {
  return Number.isInteger(Math.log2(size))
}

function isSame(left: Uint8Array, right: Uint8Array): boolean {
  return Buffer.compare(left, right) === 0
}

function assertSize(title: string, size: number): void {
  if (size < 1) throw new RangeError(`"${title}" expected at least one, got none: an empty tree has no root`)
}

function refuse(expected: string, got: string): never {
  throw new BrokerError('log_refused', `audit path refused: expected ${expected}, got ${got}`)
}
