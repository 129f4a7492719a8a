// Owns a small authority for broker tests: a real socket, real signatures, and each kind of answer can be made to
// fail alone. It decides nothing; the kernel's own tests are about deciding.
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { systemClock } from '../../native/clock.js'
import {
  AUTHORITY_PROFILE,
  type AuthorityAnswer,
  type AuthorityOperation,
  type AuthorityResult,
  SignedAuthorityRequest,
  SignedAuthorityResponse,
  signAuthorityResponse,
  verifyAuthorityRequest,
} from '../../protocol/authority-rpc.js'
import { decode, encode } from '../../protocol/codec.js'
import { revocationAuthorityDomain, revocationSetDigest } from '../../protocol/hold.js'
import type { PublicKey, SigningKey } from '../../protocol/keys.js'
import type { FramedConnection } from '../../system/framed-connection.js'
import { type Listener, listen } from '../../system/listener.js'

/** Questions of one frame are told apart: each has its own behaviour. */
export type Question = Exclude<AuthorityOperation['kind'], 'questions'>
/** Answers one question, or keeps silent with undefined. */
export type Behaviour = (
  operation: Asked,
) => AuthorityResult | undefined | Promise<AuthorityResult | undefined>
export type Asked = Exclude<AuthorityOperation, { kind: 'questions' }>

export interface TestAuthorityOptions {
  readonly path: string
  readonly key: SigningKey
  readonly broker: PublicKey
}

const FRAME_BYTES = 256 * 1024
const LATER_MS = 5_000
/** The clocks of tests are stepped by hours; whose clock is wrong is the broker's to find out. */
const MAXIMUM_SKEW_SECONDS = 100_000

export class TestAuthority {
  readonly #options: TestAuthorityOptions
  readonly #behaviours = new Map<Question, Behaviour>()
  readonly #connections = new Set<FramedConnection>()
  /** Kinds of the questions, in the order they came. */
  readonly asked: Question[] = []
  /** How many answers a frame of questions gets, where not one each. */
  answerCount: number | undefined
  connections = 0
  #listener: Listener | undefined

  constructor(options: TestAuthorityOptions) {
    this.#options = options
  }

  async start(): Promise<void> {
    mkdirSync(dirname(this.#options.path), { recursive: true, mode: 0o700 })
    this.#listener = await listen({
      path: this.#options.path,
      socketGid: null,
      clock: systemClock,
      mode: 'stream',
      admit: () => true,
      onConnection: connection => this.#serve(connection),
      onFault: () => undefined,
    })
  }

  /** From now on this kind of question is answered so; without a behaviour as an authority in order would. */
  behave(kind: Question, behaviour?: Behaviour): void {
    if (behaviour === undefined) this.#behaviours.delete(kind)
    else this.#behaviours.set(kind, behaviour)
  }

  /** Drops every connection, as a kernel that restarts does. */
  dropConnections(): void {
    for (const connection of this.#connections) connection.closeNow()
  }

  async close(): Promise<void> {
    await this.#listener?.close()
    this.#listener = undefined
  }

  async #serve(connection: FramedConnection): Promise<void> {
    this.connections += 1
    this.#connections.add(connection)
    try {
      for (;;) {
        const body = await connection.readFrame({ maximumFrameBytes: FRAME_BYTES, deadlineBootNs: null })
        void this.#answer(connection, body)
      }
    } catch {
      this.#connections.delete(connection)
    }
  }

  async #answer(connection: FramedConnection, body: Uint8Array): Promise<void> {
    const { broker, key } = this.#options
    const nowUnixSeconds = Math.floor(Date.now() / 1000)
    const request = decode(SignedAuthorityRequest, body, 'authority question')
    const verified = verifyAuthorityRequest(
      request,
      { broker, clockSkewSeconds: MAXIMUM_SKEW_SECONDS },
      nowUnixSeconds,
    )
    const result = await this.#resultOf(verified.body.operation)
    if (result === undefined || connection.ending !== undefined) return
    const response = encode(
      SignedAuthorityResponse,
      signAuthorityResponse(verified, result, nowUnixSeconds, key),
    )
    await connection
      .writeFrame(response, systemClock.bootNs() + BigInt(LATER_MS) * 1_000_000n)
      .catch(() => undefined)
  }

  async #resultOf(operation: AuthorityOperation): Promise<AuthorityResult | undefined> {
    if (operation.kind !== 'questions') return this.#behaviourOf(operation)
    const answers = await Promise.all(
      operation.request.questions.map(question => this.#behaviourOf(question)),
    )
    if (answers.includes(undefined)) return undefined
    const count = this.answerCount ?? answers.length
    const given = Array.from({ length: count }, (_, index) => answers[index] ?? rejected) as AuthorityAnswer[]
    return { kind: 'answers', response: { answers: given } }
  }

  async #behaviourOf(operation: Asked): Promise<AuthorityResult | undefined> {
    this.asked.push(operation.kind)
    return (this.#behaviours.get(operation.kind) ?? inOrder(this.#options.key))(operation)
  }
}

/** The answers of an authority that agrees with everything. */
export function inOrder(key: SigningKey): (operation: Asked) => AuthorityResult {
  return operation => {
    const nowUnixSeconds = Math.floor(Date.now() / 1000)
    switch (operation.kind) {
      case 'capabilities':
        return { kind: 'capabilities', response: CAPABLE }
      case 'verify_live_parent':
        return {
          kind: 'live_parent',
          response: {
            ...operation.request,
            authoritySnapshotDigest: 'a'.repeat(64),
            delegationAncestorIds: [],
            expiresAtUnixSeconds: nowUnixSeconds + 3_600,
            verifiedAtUnixSeconds: nowUnixSeconds,
          },
        }
      case 'check_broker_revocation':
        return {
          kind: 'revocation',
          response: {
            authorityDomain: revocationAuthorityDomain(key.publicKey),
            commitIndex: 7,
            observedAtUnixSeconds: nowUnixSeconds,
            revoked: false,
          },
        }
      case 'query_execution_hold':
        return {
          kind: 'hold',
          response: {
            captured: {
              authorityCommitIndex: 11,
              budgetCommitIndex: 12,
              checkedRevocationSetDigest: revocationSetDigest(operation.request.revocationIds),
              leaderEpoch: 1,
              revocationCommitIndex: 7,
            },
          },
        }
    }
  }
}

export const CAPABLE = {
  atomicMultiKeyHolds: true,
  combinedCaptureAndRevocation: true,
  profile: AUTHORITY_PROFILE,
  queryById: true,
  sharedRevocationWriteDomain: true,
} as const

export const rejected: AuthorityResult = { kind: 'rejected', response: { code: 'authorization_denied' } }
