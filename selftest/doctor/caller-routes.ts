// The HTTP routes of caller delivery, where the kernel's configuration names them: whether their token and their socket
// are such that the kernel starts, and whether anybody could use them. The token is not opened, nothing is connected to.
import type { KernelConfig } from '../../kernel/config.js'
import { CONTROL_TOKEN_FILE_BYTES } from '../../sidecar/control-token.js'
import type { Identities } from '../../system/identities.js'
import { type Check, missing, ok, weaker } from './check.js'
import type { DocumentFound } from './configuration.js'
import { type KeyFileFound, secretFileFault } from './key-files.js'
import { lookAt } from './look.js'
import { socketRefusal } from './sockets.js'

const NAME = 'caller-routes'
const NEW_TOKEN =
  'write a new token, as the user of the kernel: (umask 077; head -c 32 /dev/urandom | base64 > FILE)'

export type CallerRoutesFound =
  | { readonly kind: 'hidden' }
  | { readonly kind: 'none' }
  | {
      readonly kind: 'pinned'
      readonly executorId: string
      /** Null: served nowhere. */
      readonly listen: string | null
      /** What custody said against the socket's place. */
      readonly refusal: string | null
      readonly token: KeyFileFound | null
    }

export function findCallerRoutes(
  kernel: DocumentFound<Pick<KernelConfig, 'callerDelivery'>>,
  identities: Identities,
): CallerRoutesFound {
  if (kernel.kind !== 'read') return { kind: 'hidden' }
  const delivery = kernel.document.callerDelivery
  if (delivery === null) return { kind: 'none' }
  const { controlTokenFile: file, executor, listen } = delivery
  const ownerUid = identities.kernel.uid
  const path = listen !== null && 'path' in listen ? listen.path : null
  return {
    executorId: executor.executorId,
    kind: 'pinned',
    listen: listen === null ? null : 'path' in listen ? listen.path : `${listen.host}:${listen.port}`,
    refusal: path === null ? null : socketRefusal(path, { ownerUid, socketGid: null }),
    token: file === null ? null : { look: lookAt(file), ownerUid, path: file },
  }
}

export function judgeCallerRoutes(found: CallerRoutesFound): Check {
  if (found.kind === 'hidden') return ok(NAME, "not known: the kernel's configuration is not ours to see")
  if (found.kind === 'none') return ok(NAME, 'none: the kernel delivers tool calls to nobody')
  const { executorId, listen, refusal, token } = found
  const rule = { bytes: CONTROL_TOKEN_FILE_BYTES, restore: NEW_TOKEN }
  const fault = token === null ? undefined : secretFileFault(token, rule)
  if (fault !== undefined) return missing(NAME, fault.text, fault.remedy)
  if (refusal !== null) {
    const move =
      "move callerDelivery.listen.path of the kernel's configuration into a private folder of its user"
    return missing(NAME, refusal, move)
  }
  if (listen === null)
    return ok(NAME, `none: calls for executor ${executorId} are on the kernel's own socket`)
  if (token === null) {
    const name = "name a controlTokenFile in callerDelivery of the kernel's configuration"
    return weaker(NAME, `at ${listen}, and nobody may start or report over them: there is no token`, name)
  }
  return ok(NAME, `at ${listen}, for executor ${executorId}, behind its control token`)
}
