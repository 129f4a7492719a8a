// Owns making a found case small: pieces are cut out as long as the same promise stays broken.

const MAXIMUM_TRIES = 1_000

/** @param isBroken whether this input breaks the same promise. */
export async function shrink(
  found: Uint8Array,
  isBroken: (input: Uint8Array) => Promise<boolean>,
): Promise<Uint8Array> {
  let smallest = found
  let tries = 0
  for (let piece = smallest.length >> 1; piece > 0; piece >>= 1) {
    for (let at = 0; at < smallest.length && tries < MAXIMUM_TRIES; ) {
      tries++
      const without = Buffer.concat([smallest.subarray(0, at), smallest.subarray(at + piece)])
      if (await isBroken(without)) smallest = without
      else at += piece
    }
  }
  return smallest
}
