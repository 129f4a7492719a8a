// Owns a broker that answers one preparation as a test says: a real socket in real custody, real frames, and a count
// of the connections and operations that reached it. It holds no slot and signs nothing.
import { chmodSync, chownSync, mkdirSync, renameSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { dirname } from 'node:path'
import { once } from 'node:events'
import { PREPARE_ACKNOWLEDGEMENT_SCHEMA, preparedDispatchId } from '../../protocol/acknowledgement.js'
import { canonicalBytes } from '../../protocol/canonical.js'
import { decode, encode } from '../../protocol/codec.js'
import { AuthenticatedIpcRequest, IpcResponse } from '../../protocol/envelope.js'
import { encodeFrame, FrameReader } from '../../protocol/frame.js'
import type { JsonValue } from '../../protocol/json.js'
import type { AttemptRegistration } from '../../protocol/registration.js'

/** What the connection gets: bytes and then its end, or silence until the client leaves. */
export type FakeAnswer = Uint8Array | 'silence'

export interface FakeBroker {
  readonly connections: number
  readonly operations: readonly string[]
  /** How many of them have ended on both sides. */
  readonly closed: number
  answer: (request: AuthenticatedIpcRequest, socket: Socket) => FakeAnswer
  close(): Promise<void>
}

const REQUEST_BYTES = 8 * 1024 * 1024

class Fake implements FakeBroker {
  connections = 0
  closed = 0
  readonly operations: string[] = []
  answer: FakeBroker['answer'] = () => new Uint8Array(0)
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  constructor() {
    this.#server = createServer({ allowHalfOpen: true }, socket => this.#serve(socket))
  }

  async listen(path: string): Promise<void> {
    this.#server.listen(path)
    await once(this.#server, 'listening')
    chmodSync(path, 0o600)
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
    await once(this.#server, 'close')
  }

  #serve(socket: Socket): void {
    this.connections += 1
    this.#sockets.add(socket)
    const reader = new FrameReader(REQUEST_BYTES)
    socket.on('error', () => undefined)
    socket.on('close', () => {
      this.closed += 1
      this.#sockets.delete(socket)
    })
    socket.on('end', () => socket.end())
    socket.on('data', (chunk: Buffer) => {
      const body = reader.push(chunk)
      if (body !== undefined) this.#respond(socket, body)
    })
  }

  #respond(socket: Socket, body: Uint8Array): void {
    const request = decode(AuthenticatedIpcRequest, body, 'request of a client')
    this.operations.push(request.operation)
    const answer = this.answer(request, socket)
    if (answer !== 'silence') socket.end(answer)
  }
}

/** Serves at a path whose directory is made private for this process. */
export async function startFakeBroker(path: string): Promise<FakeBroker> {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const fake = new Fake()
  await fake.listen(path)
  return fake
}

/** Puts another live socket in the place of the one that was judged. */
export async function replaceSocket(path: string): Promise<FakeBroker> {
  const fake = new Fake()
  await fake.listen(`${path}.other`)
  renameSync(`${path}.other`, path)
  return fake
}

/** Gives directory and socket to an owner, as only root can. */
export function giveSocketTo(path: string, owner: { uid: number; gid: number; shared: boolean }): void {
  chownSync(dirname(path), owner.uid, owner.gid)
  chmodSync(dirname(path), owner.shared ? 0o710 : 0o700)
  chownSync(path, owner.uid, owner.gid)
  chmodSync(path, owner.shared ? 0o660 : 0o600)
}

/** The members of the one right acknowledgement of a registration. */
export function acknowledgementOf(registration: AttemptRegistration): Record<string, JsonValue> {
  return {
    attemptId: registration.ids.attemptId,
    operationId: registration.ids.operationId,
    preparedAtUnixSeconds: Math.floor(Date.now() / 1_000),
    preparedDispatchId: preparedDispatchId(registration),
    schema: PREPARE_ACKNOWLEDGEMENT_SCHEMA,
  }
}

/** A frame that accepts with this document, whatever it says. */
export function acceptedFrame(document: JsonValue, changes: Partial<IpcResponse> = {}): Uint8Array {
  return responseFrame({ response: canonicalBytes(document), ...changes })
}

/** A frame that declines with a code. */
export function declinedFrame(errorCode: string): Uint8Array {
  return responseFrame({ accepted: false, errorCode, response: new Uint8Array(0) })
}

function responseFrame(changes: Partial<IpcResponse>): Uint8Array {
  const response: IpcResponse = {
    accepted: true,
    errorCode: null,
    operation: 'prepare_connection',
    response: new Uint8Array(0),
    ...changes,
  }
  return encodeFrame(encode(IpcResponse, response))
}
