// Owns the kinds of fault with which a provider cannot be reached, so that an operator is told which: its name, its port
// or its certificate. Nothing was sent in any of them.
// Must never: hold a byte of a peer. What came is a code, an address range, or words of ours.
import { BrokerError } from '../../protocol/errors.js'

/** No usable addresses · a name that leads where nothing may go · no connection, or one that was lost · no identity. */
export type OpeningFaultKind = 'unresolved' | 'restricted' | 'unreachable' | 'unverified'

export class OpeningFault extends BrokerError {
  readonly kind: OpeningFaultKind
  /** What came instead, to complete "expected …, got". */
  readonly got: string
  /** Whether it is only that time ran out: then the step that was under way says which kind it is. */
  readonly isLate: boolean

  constructor(
    kind: OpeningFaultKind,
    got: string,
    options: { readonly isLate?: boolean; readonly cause?: unknown } = {},
  ) {
    const code = kind === 'restricted' ? 'authorization_denied' : 'upstream'
    super(code, `provider ${kind}: got ${got}; nothing was sent`, { cause: options.cause })
    this.kind = kind
    this.got = got
    this.isLate = options.isLate ?? false
  }
}
