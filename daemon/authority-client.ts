// Owns the questions to the kernel: signed by the broker, answered under the pinned authority key, over one
// persistent connection with several outstanding. The daemon starts without the kernel; a question then fails.
// Must never: believe an answer to another question, or an authority that cannot do what is demanded of it.
// Source: the broker protocol's authority RPC, section 17; docs/authority-rpc.md.
import { randomBytes } from 'node:crypto'
import {
  AUTHORITY_PROFILE,
  type AuthorityAnswer,
  type AuthorityOperation,
  type AuthorityQuestion,
  type AuthorityResult,
  signAuthorityRequest,
  SignedAuthorityRequest,
  SignedAuthorityResponse,
  verifyAuthorityResponse,
} from '../protocol/authority-rpc.js'
import { type Clock, unixSeconds } from '../protocol/clock.js'
import { decode, encode } from '../protocol/codec.js'
import { BrokerError } from '../protocol/errors.js'
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

  /**
   * Asks all questions in one signed frame.
   * @returns an answer for each, in their order; one may be `rejected`, none is judged.
   * @throws Refused `authority_unreachable`.
   */
  async ask<const Q extends readonly AuthorityQuestion[]>(
    questions: Q,
    latestBootNs: bigint,
  ): Promise<{ readonly [I in keyof Q]: AuthorityAnswer }> {
    const request = { questions: [...questions] }
    const result = await this.#ask({ kind: 'questions', request }, latestBootNs)
    if (result.kind !== 'answers' || result.response.answers.length !== questions.length) {
      throw new Refused('authority_unreachable', 'an answer to other questions')
    }
    return result.response.answers as unknown as { readonly [I in keyof Q]: AuthorityAnswer }
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
    if (result.kind !== 'capabilities') {
      throw new Refused('authority_unreachable', 'an answer to another question')
    }
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

/** The connection looks for the id in an answer that is then judged: it is read once. */
const answers = new WeakMap<Uint8Array, SignedAuthorityResponse>()

function readAnswer(body: Uint8Array): SignedAuthorityResponse {
  const answer = answers.get(body) ?? decode(SignedAuthorityResponse, body, 'authority answer')
  answers.set(body, answer)
  return answer
}
