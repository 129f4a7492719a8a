// Owns the life of a private key in a command: made of its seed, used for one act, and wiped, seed and all.
// Must never: outlive the act, also where that fails.
import { type SigningKey, signingKey } from '../protocol/keys.js'

/** @param seed 32 bytes, zeros afterwards */
export async function withWipedKey<T>(
  seed: Uint8Array,
  act: (key: SigningKey) => Promise<T> | T,
): Promise<T> {
  const key = signingKey(seed)
  seed.fill(0)
  try {
    return await act(key)
  } finally {
    key.wipe()
  }
}
