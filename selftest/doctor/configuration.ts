// The four documents of an installation: who owns them, who else could write them, whether their readers take them,
// keys included, and whether they name the same broker. What this user may not read is left out and said.
import { type BrokerdConfig, ownConfig, parseConfig } from '../../daemon/config.js'
import { type HostPins, parseHostPins } from '../../host/pins.js'
import { type KernelConfig, ownKernelConfig, parseKernelConfig } from '../../kernel/config.js'
import { ERROR_CODES } from '../../protocol/error-codes.js'
import { type BrokerError, isBrokerError } from '../../protocol/errors.js'
import { MAXIMUM_CONFIGURATION_BYTES } from '../../protocol/limits.js'
import type { Layout } from '../../system/layout.js'
import { assertOwnSockets } from '../../system/own-state.js'
import { readRetainedFile } from '../../system/retained-file.js'
import { type Check, missing, ok } from './check.js'
import type { Installation } from './installation.js'
import { lookAt } from './look.js'

const NAME = 'configuration'
const GROUP_OR_OTHERS_WRITE = 0o022

/** A document, or why there is none. */
export type DocumentFound<T> =
  | { readonly kind: 'read'; readonly document: T }
  | { readonly kind: 'hidden' }
  | { readonly kind: 'refused'; readonly sentence: string; readonly remedy?: string }

export interface ConfigurationFound {
  readonly broker: DocumentFound<BrokerdConfig>
  readonly kernel: DocumentFound<KernelConfig>
  readonly pins: DocumentFound<HostPins>
  readonly identities: DocumentFound<Uint8Array>
}

export function findConfiguration({
  administratorUid,
  identities,
  layout,
}: Installation): ConfigurationFound {
  return {
    broker: read(layout.broker.config, identities.broker.uid, bytes =>
      ownConfig(layout.broker.config, parseConfig(bytes)),
    ),
    kernel: read(layout.kernel.config, identities.kernel.uid, bytes =>
      ownKernelConfig(layout.kernel.config, parseKernelConfig(bytes)),
    ),
    pins: read(layout.pins, administratorUid, bytes => ownPins(parseHostPins(bytes), layout)),
    identities: read(layout.identities, administratorUid, bytes => bytes),
  }
}

function read<T>(path: string, ownerUid: number, parse: (bytes: Uint8Array) => T): DocumentFound<T> {
  const { kind } = lookAt(path)
  if (kind === 'hidden') return { kind }
  if (kind === 'absent') return { kind: 'refused', sentence: `${path} is missing` }
  try {
    const rules = {
      maximumBytes: MAXIMUM_CONFIGURATION_BYTES,
      ownerUid,
      forbiddenMode: GROUP_OR_OTHERS_WRITE,
    }
    return { kind: 'read', document: parse(readRetainedFile(path, rules)) }
  } catch (error) {
    if (isBrokerError(error)) return refusedBy(error)
    if ((error as NodeJS.ErrnoException).code === 'EACCES') return { kind: 'hidden' }
    throw error
  }
}

function refusedBy({ code, message }: BrokerError): DocumentFound<never> {
  const remedy = code === 'state_elsewhere' ? { remedy: ERROR_CODES[code].next } : {}
  return { kind: 'refused', sentence: message, ...remedy }
}

function ownPins(pins: HostPins, { state }: Layout): HostPins {
  assertOwnSockets('pins.json', state, [pins.broker.socketPath, pins.kernel.socketPath])
  return pins
}

export function judgeConfiguration(found: ConfigurationFound): Check {
  const documents = Object.values(found) as DocumentFound<unknown>[]
  const refused = documents.find(document => document.kind === 'refused')
  if (refused !== undefined)
    return missing(
      NAME,
      refused.sentence,
      refused.remedy ?? 'give the file back to its owner, or correct the named member',
    )
  const apart = disagreement(found)
  if (apart !== undefined) return missing(NAME, apart, 'take both from one installation')
  const hidden = documents.filter(({ kind }) => kind === 'hidden').length
  const seen = `${documents.length - hidden} files, owned and written by their owners alone`
  if (hidden === 0) return ok(NAME, seen)
  return ok(NAME, `${seen}; ${hidden} are not ours to see`, 'run it as root, or as their owner, for the rest')
}

/** What no document can say alone: who the broker is, and where it listens. */
function disagreement({ broker, kernel, pins }: ConfigurationFound): string | undefined {
  const named = [
    broker.kind === 'read' ? [broker.document.brokerIdentity, broker.document.socketPath] : [],
    kernel.kind === 'read' ? [kernel.document.broker.receiptKey, kernel.document.broker.socketPath] : [],
    pins.kind === 'read' ? [pins.document.broker.receiptKey, pins.document.broker.socketPath] : [],
  ].filter(pair => pair.length > 0)
  const [keys, paths] = [0, 1].map(member => new Set(named.map(pair => pair[member])))
  if (keys !== undefined && keys.size > 1) return 'the documents pin different receipt keys of the broker'
  if (paths !== undefined && paths.size > 1) return 'the documents name different sockets of the broker'
  return undefined
}
