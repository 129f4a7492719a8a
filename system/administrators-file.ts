// Owns: reading what the administrator of an installation wrote for others to believe: pins, identities.
// Must never: believe a file, or a folder above it, that anybody but root or we ourselves could have written.
import { assertAncestors } from './ancestors.js'
import { readRetainedFile } from './retained-file.js'

const MAXIMUM_BYTES = 65_536
const WRITABLE_BY_OTHERS = 0o022

/**
 * @throws BrokerError `custody`; an error with code ENOENT or EACCES when there is none, or none for us.
 */
export function readAdministratorsFile(path: string): Uint8Array {
  const own = process.geteuid?.() ?? 0
  const ownerUid = [...new Set([0, own])]
  const bytes = readRetainedFile(path, {
    maximumBytes: MAXIMUM_BYTES,
    ownerUid,
    forbiddenMode: WRITABLE_BY_OTHERS,
  })
  assertAncestors(path, own)
  return bytes
}
