// Trees over a log: their roots, their paths, and that a frontier grows to the same root as the whole tree.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { toHex } from '../../protocol/digest.js'
import {
  auditPath,
  consistencyPath,
  type Frontier,
  grownFrontier,
  isConsistent,
  leafHash,
  merkleRoot,
  nodeHash,
  rootOfFrontier,
  rootOfPath,
} from '../../protocol/merkle.js'
import { fullCount } from '../support/counts.js'
import { codeOf } from '../support/descriptors.js'
import { describeVectors, readVectors } from '../support/vectors.js'

const leavesOf = (count: number): Uint8Array[] =>
  Array.from({ length: count }, (_, index) => leafHash(Buffer.from(`leaf-${index}`)))
const largest = fullCount(40, 300)

describeVectors('small trees of the vectors', folder => {
  const { text_leaves_leaf_i_roots: roots } = readVectors<{
    text_leaves_leaf_i_roots: { n: number; root: string }[]
  }>(folder, 'derived', 'merkle.json')

  test.each(roots)('the root of $n leaves is $root', ({ n, root }) => {
    expect(`0x${toHex(merkleRoot(leavesOf(n)))}`).toBe(root)
  })
})

describe('a root', () => {
  test('of one leaf is the leaf, and of none is an error', () => {
    const [leaf] = leavesOf(1)
    expect(merkleRoot(leavesOf(1))).toEqual(leaf)
    expect(() => merkleRoot([])).toThrow(RangeError)
    expect(() => rootOfFrontier([])).toThrow(RangeError)
  })

  test('carries an odd last node up unchanged', () => {
    const [a, b, c] = leavesOf(3) as [Uint8Array, Uint8Array, Uint8Array]
    expect(merkleRoot([a, b, c])).toEqual(nodeHash(nodeHash(a, b), c))
  })

  test('of a leaf that is two hashes long is not that of a node over them', () => {
    const [a, b] = leavesOf(2) as [Uint8Array, Uint8Array]
    expect(leafHash(Buffer.concat([a, b]))).not.toEqual(nodeHash(a, b))
  })

  test('is found by a frontier at every size, without reading a leaf again', () => {
    let frontier: Frontier = []
    for (const [size, leaf] of leavesOf(largest).entries()) {
      frontier = grownFrontier(frontier, size, leaf)
      expect(rootOfFrontier(frontier)).toEqual(merkleRoot(leavesOf(size + 1)))
      expect(frontier.length).toBe(bitsOf(size + 1))
    }
  })
})

function bitsOf(size: number): number {
  return [...size.toString(2)].filter(bit => bit === '1').length
}

describe('an audit path', () => {
  test('leads from every leaf of every tree to its root', () => {
    for (let size = 1; size <= largest; size++) {
      const leaves = leavesOf(size)
      const root = merkleRoot(leaves)
      for (const [index, leaf] of leaves.entries()) {
        expect(rootOfPath({ leaf, index, size }, auditPath(leaves, index))).toEqual(root)
      }
    }
  })

  test('of another place, another leaf or another size leads elsewhere or is refused', () => {
    const sizes = fc.integer({ min: 2, max: 40 })
    const changed = fc.tuple(sizes, fc.nat(1_000), fc.nat(1_000), sizes)
    fc.assert(
      fc.property(changed, ([size, index, other, otherSize]) => {
        const leaves = leavesOf(size)
        const place = { index: index % size, leaf: leaves[index % size] as Uint8Array, size }
        const moved = { ...place, index: other % size, size: Math.max(otherSize, (other % size) + 1) }
        if (moved.index === place.index && moved.size === place.size) return
        const path = auditPath(leaves, place.index)
        expect(leadsTo(moved, path, merkleRoot(leaves))).toBe(turnsOf(place) === turnsOf(moved))
      }),
      { numRuns: fullCount(200, 5_000) },
    )
  })

  test('with a sibling missing or left over is refused', async () => {
    const leaves = leavesOf(5)
    const path = auditPath(leaves, 2)
    const place = { leaf: leaves[2] as Uint8Array, index: 2, size: 5 }
    expect(await codeOf(() => rootOfPath(place, path.slice(1)))).toBe('log_refused')
    expect(await codeOf(() => rootOfPath(place, [...path, ...path]))).toBe('log_refused')
    expect(await codeOf(() => rootOfPath({ ...place, index: 5 }, path))).toBe('log_refused')
  })
})

/** A path says the turns alone: the same ones lead to the same root in a tree of another size, which is why sizes are compared. */
function turnsOf({ index, size }: { index: number; size: number }): string {
  if (size === 1) return ''
  const split = 2 ** Math.floor(Math.log2(size - 1))
  return index < split
    ? `${turnsOf({ index, size: split })}r`
    : `${turnsOf({ index: index - split, size: size - split })}l`
}

function leadsTo(
  place: { leaf: Uint8Array; index: number; size: number },
  path: readonly Uint8Array[],
  root: Uint8Array,
): boolean {
  try {
    return Buffer.compare(rootOfPath(place, path), root) === 0
  } catch {
    return false
  }
}

describe('a consistency path', () => {
  const headOf = (size: number) => ({ size, root: merkleRoot(leavesOf(size)) })

  test('proves every tree to be the beginning of every later one', () => {
    for (let to = 1; to <= fullCount(18, 64); to++) {
      for (let from = 1; from <= to; from++) {
        const path = consistencyPath(leavesOf(to), from)
        expect({ from, to, holds: isConsistent(headOf(from), headOf(to), path) }).toEqual({
          from,
          to,
          holds: true,
        })
      }
    }
  })

  test('never joins a tree to one that was rewritten', () => {
    for (let to = 2; to <= 17; to++) {
      const rewritten = leavesOf(to)
      rewritten[0] = leafHash(Buffer.from('another'))
      const forged = { size: to, root: merkleRoot(rewritten) }
      for (let from = 1; from < to; from++) {
        expect(isConsistent(headOf(from), forged, consistencyPath(rewritten, from))).toBe(false)
        expect(isConsistent(headOf(from), forged, consistencyPath(leavesOf(to), from))).toBe(false)
      }
    }
  })

  test('that is cut, longer or turned round proves nothing', () => {
    const path = consistencyPath(leavesOf(13), 6)
    for (const spoiled of [path.slice(1), path.slice(0, -1), [...path, ...path], [...path].reverse(), []]) {
      expect(isConsistent(headOf(6), headOf(13), spoiled)).toBe(false)
    }
    expect(isConsistent(headOf(13), headOf(6), path)).toBe(false)
    expect(isConsistent({ size: 0, root: new Uint8Array(32) }, headOf(6), [])).toBe(false)
  })
})
