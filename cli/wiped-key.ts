// Owns the life of a private key in a command: it is used for one act, and wiped.
// Must never: outlive the act, also where that fails.
import { type SigningKey, signingKey } from '../protocol/keys.js'

/** @param seed 32 bytes, zeros afterwards */
export function withKeyOf<T>(seed: Uint8Array, act: (key: SigningKey) => Promise<T>): Promise<T> {
  const key = signingKey(seed)
  seed.fill(0)
  return withWiped(key, act)
}

export async function withWiped<T>(key: SigningKey, act: (key: SigningKey) => Promise<T>): Promise<T> {
  try {
    return await act(key)
  } finally {
    key.wipe()
  }
}
