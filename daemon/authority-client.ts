// Owns the questions to the kernel: signed by the broker, answered under the pinned authority key, over one
// persistent connection with several outstanding. The daemon starts without the kernel; a question then fails.
// Must never: believe an answer to another question, or an authority that cannot do what is demanded of it.
// Source: the broker protocol's authority RPC, section 17; docs/authority-rpc.md.
import { randomBytes } from 'node:crypto'
import {
  AUTHORITY_PROFILE,
  type AuthorityOperation,
  type AuthorityResult,
  type HoldQuery,
  type LiveParent,
  type RevocationSnapshot,
  signAuthorityRequest,
  SignedAuthorityRequest,
  SignedAuthorityResponse,
  verifyAuthorityResponse,
} from '../protocol/authority-rpc.js'
import { type Clock, unixSeconds } from '../protocol/clock.js'
import { decode, encode } from '../protocol/codec.js'
import { BrokerError } from '../protocol/errors.js'
import type { HoldState } from '../protocol/hold.js'
import type { SigningKey } from '../protocol/keys.js'
import { RpcConnection } from '../system/rpc-connection.js'
import type { BrokerdConfig } from './config.js'
import { bootNsAfter, earlier } from './deadline.js'
import { Refused, refusing } from './refused.js'

/** The largest answer: a live parent with 128 ancestors of 512 bytes. */
const MAXIMUM_FRAME_BYTES = 256 * 1024

export interface AuthorityParts {
  readonly config: BrokerdConfig
  readonly clock: Clock
  readonly key: SigningKey
}

export class AuthorityClient {
  readonly #parts: AuthorityParts
  readonly #rpc: RpcConnection
  #connections = 0
  /** The connection on which the authority's capabilities were last found sufficient. */
  #capableConnection = 0
  #asking: Promise<void> | undefined

  constructor(parts: AuthorityParts) {
    this.#parts = parts
    const { authority } = parts.config
    this.#rpc = new RpcConnection({
      path: authority.socketPath,
      ownerUid: authority.uid,
      socketGid: authority.gid,
      clock: parts.clock,
      maximumFrameBytes: MAXIMUM_FRAME_BYTES,
      keyOf: body => readAnswer(body).body.requestId,
      onConnected: () => {
        this.#connections += 1
      },
    })
  }

  /** @throws Refused `parent_not_live` or `authority_unreachable`. */
  async liveParent(
    query: { audience: string; capabilityId: string; subject: string },
    deadlineBootNs: bigint,
  ): Promise<LiveParent> {
    const result = await this.#ask({ kind: 'verify_live_parent', request: query }, deadlineBootNs)
    if (result.kind === 'live_parent') return result.response
    throw rejection(result, 'parent_not_live')
  }

  /** @throws Refused `authority_unreachable`. */
  async revocation(revocationIds: readonly string[], deadlineBootNs: bigint): Promise<RevocationSnapshot> {
    const request = { revocationIds }
    const result = await this.#ask({ kind: 'check_broker_revocation', request }, deadlineBootNs)
    if (result.kind === 'revocation') return result.response
    throw rejection(result, 'authority_unreachable')
  }

  /** @throws Refused `hold_not_captured` or `authority_unreachable`. */
  async hold(query: HoldQuery, deadlineBootNs: bigint): Promise<HoldState> {
    const result = await this.#ask({ kind: 'query_execution_hold', request: query }, deadlineBootNs)
    if (result.kind === 'hold') return result.response
    throw rejection(result, 'hold_not_captured')
  }

  /** Whether the authority answers at this moment and can do what is demanded of it. */
  async answers(latestBootNs: bigint): Promise<boolean> {
    const { clock, config } = this.#parts
    try {
      await this.#askCapabilities(earlier(latestBootNs, bootNsAfter(clock, config.authority.timeoutMs)))
      return true
    } catch (error) {
      if (error instanceof Refused || error instanceof BrokerError) return false
      throw error
    }
  }

  close(): void {
    this.#rpc.close()
  }

  async #ask(operation: AuthorityOperation, latestBootNs: bigint): Promise<AuthorityResult> {
    const { clock, config } = this.#parts
    const deadlineBootNs = earlier(latestBootNs, bootNsAfter(clock, config.authority.timeoutMs))
    try {
      await this.#assertCapable(deadlineBootNs)
      const result = await this.#question(operation, deadlineBootNs)
      // The connection may have been replaced in between; the answer counts once the new one is known to be fit.
      await this.#assertCapable(deadlineBootNs)
      return result
    } catch (cause) {
      if (cause instanceof Refused || !(cause instanceof BrokerError)) throw cause
      throw new Refused('authority_unreachable', cause.code, cause)
    }
  }

  async #assertCapable(deadlineBootNs: bigint): Promise<void> {
    if (this.#capableConnection === this.#connections && this.#connections > 0) return
    this.#asking ??= this.#askCapabilities(deadlineBootNs).finally(() => {
      this.#asking = undefined
    })
    await this.#asking
  }

  async #askCapabilities(deadlineBootNs: bigint): Promise<void> {
    const result = await this.#question({ kind: 'capabilities', request: {} }, deadlineBootNs)
    if (result.kind !== 'capabilities') throw rejection(result, 'authority_unreachable')
    const { profile, ...abilities } = result.response
    if (profile !== AUTHORITY_PROFILE || !Object.values(abilities).every(able => able)) {
      throw new Refused('authority_unreachable', 'an authority without the demanded abilities')
    }
    this.#capableConnection = this.#connections
  }

  async #question(operation: AuthorityOperation, deadlineBootNs: bigint): Promise<AuthorityResult> {
    const { clock, config, key } = this.#parts
    const requestId = randomBytes(32).toString('hex')
    const question = { operation, requestId, issuedAtUnixSeconds: unixSeconds(clock) }
    const request = signAuthorityRequest(question, key)
    const body = await this.#rpc.request(requestId, encode(SignedAuthorityRequest, request), deadlineBootNs)
    const pins = { authority: config.authority.publicKey, clockSkewSeconds: config.clockSkewSeconds }
    const answer = refusing('authority_unreachable', () =>
      verifyAuthorityResponse(readAnswer(body), request, pins, unixSeconds(clock)),
    )
    return answer.body.result
  }
}

function readAnswer(body: Uint8Array): SignedAuthorityResponse {
  return decode(SignedAuthorityResponse, body, 'authority answer')
}

type Rejection = 'parent_not_live' | 'authority_unreachable' | 'hold_not_captured'

/** A rejection by the authority is its word on the question; another kind of answer is no answer. */
function rejection(result: AuthorityResult, reason: Rejection): Refused {
  if (result.kind !== 'rejected') return new Refused('authority_unreachable', 'an answer of another kind')
  const unavailable = result.response.code === 'authority_unavailable'
  return new Refused(unavailable ? 'authority_unreachable' : reason, 'a rejection')
}
