// What a host says of the flow of information around a call: of which session it is, in which generation of it, and under
// which labels the agent stands by now. Must never authorize anything: it is a snapshot that its host vouches for; a
// guard may deny by it, nothing allows by it.
// Source: the security invocation context of the kernel's caller API (preflight, refreshed context, start).
import { array, encode, type Infer, identifier, literal, object, refine } from './codec.js'
import { sha256Hex } from './digest.js'
import { BrokerError } from './errors.js'
import { MAXIMUM_CONTEXT_LABELS_COUNT } from './limits.js'
import { Count } from './unix-time.js'

const MAXIMUM_LABEL_BYTES = 128

const ContextMembers = object({
  /** Rises with every change of the session's labels. */
  generation: Count,
  labels: array(identifier(MAXIMUM_LABEL_BYTES), { max: MAXIMUM_CONTEXT_LABELS_COUNT }),
  schema: literal('chio.invocation-context.v1'),
  session_id: identifier(),
})

/** One spelling of a set: each label once, in order. */
export const InvocationContext = refine(ContextMembers, ({ labels }) => {
  if (labels.every((label, at) => at === 0 || (labels[at - 1] as string) < label)) return
  throw new BrokerError(
    'invalid_request',
    'invocation context labels refused: expected each once, in ascending order',
  )
})
export type InvocationContext = Infer<typeof InvocationContext>

export function contextDigest(context: InvocationContext): string {
  return sha256Hex(encode(InvocationContext, context))
}

/**
 * A later look at the same session. Its labels may be others; it is never an older look.
 * @throws BrokerError `context_stale`.
 */
export function assertFollows(context: InvocationContext, earlier: InvocationContext): void {
  if (context.session_id !== earlier.session_id) refuse('the session of the preflight, got another')
  if (context.generation < earlier.generation) {
    refuse(`generation ${earlier.generation} or a later one, got ${context.generation}`)
  }
  const isSame = contextDigest(context) === contextDigest(earlier)
  if (context.generation === earlier.generation && !isSame) {
    refuse('a new generation with changed labels, got the old one')
  }
}

function refuse(expected: string): never {
  throw new BrokerError('context_stale', `invocation context refused: expected ${expected}; refresh it`, {
    outcome: 'not_started',
  })
}
