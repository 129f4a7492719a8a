// Owns chio-broker-mcp as a process outside any cage: its standard input from the test, a peer of the test's own in the
// broker's place at descriptor 8. Ends only what it started.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { closeDescriptor, packageRoot, readFrame, socketPair, writeFully } from '../../native/index.js'
import { encode } from '../../protocol/codec.js'
import { IpcResponse } from '../../protocol/envelope.js'
import { BrokerExecuteFailure } from '../../protocol/failure.js'
import { encodeFrame } from '../../protocol/frame.js'
import { deadlineIn } from './descriptors.js'
import { TOOL_NAME } from './mcp-messages.js'
import { OWN_KEYS, TENANT } from './own-request.js'

export const PROGRAM = join(packageRoot(), 'dist', 'cli', 'chio-broker-mcp.js')
export const ARGUMENTS: readonly string[] = [
  '--tenant-scope',
  TENANT,
  '--tool-name',
  TOOL_NAME,
  '--receipt-signer',
  OWN_KEYS.receipt.publicKey,
]

/** The frame of an accepted answer that carries a document. */
export function acceptedFrame(document: Uint8Array): Uint8Array {
  const answer = { accepted: true, errorCode: null, operation: 'execute', response: document }
  return encodeFrame(encode(IpcResponse, answer))
}

/** The frame of a signed failure. */
export function failedFrame(failure: BrokerExecuteFailure): Uint8Array {
  const response = encode(BrokerExecuteFailure, failure)
  const answer = { accepted: false, errorCode: failure.diagnosticCode, operation: 'execute', response }
  return encodeFrame(encode(IpcResponse, answer))
}

export interface ServerEnd {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
  /** The body of the frame that came on descriptor 8; null when none came. */
  readonly submitted: Uint8Array | null
}

export interface ServerRun {
  readonly input: Uint8Array
  readonly args?: readonly string[]
  /** 8 is the stream unless said otherwise. */
  readonly descriptor?: 'stream' | 'pipe' | 'closed'
  /** Written to the stream after a frame came, as it is; then the peer closes. */
  readonly reply?: Uint8Array
  /** The input stays open: only the server itself ends the session. */
  readonly open?: boolean
}

const LIMIT_MS = 60_000

/** Runs one server to its end. */
export async function runServer(run: ServerRun): Promise<ServerEnd> {
  const [peer, stream] = socketPair('stream')
  const kinds = { stream, pipe: 'pipe', closed: 'ignore' } as const
  const free = Array.from({ length: 5 }, () => 'ignore' as const)
  const child = spawn(process.execPath, [PROGRAM, ...(run.args ?? ARGUMENTS)], {
    stdio: ['pipe', 'pipe', 'pipe', ...free, kinds[run.descriptor ?? 'stream']],
    env: {},
    timeout: LIMIT_MS,
  })
  closeDescriptor(stream)
  const said = { stdout: '', stderr: '' }
  child.stdout?.on('data', (chunk: Buffer) => (said.stdout += chunk.toString()))
  child.stderr?.on('data', (chunk: Buffer) => (said.stderr += chunk.toString()))
  // It may be gone before it has read all.
  child.stdin?.on('error', () => undefined)
  if (run.open === true) child.stdin?.write(run.input)
  else child.stdin?.end(run.input)
  const submitted = serve(peer, run.reply)
  const [status] = (await once(child, 'close')) as [number | null]
  return { status, ...said, submitted: await submitted }
}

async function serve(peer: number, reply: Uint8Array | undefined): Promise<Uint8Array | null> {
  try {
    const limits = { maximumFrameBytes: 1 << 23, deadlineBootNs: deadlineIn(LIMIT_MS) }
    const frame = await readFrame(peer, limits)
    if (frame !== null && reply !== undefined) await writeFully(peer, reply, deadlineIn(LIMIT_MS))
    return frame
  } finally {
    closeDescriptor(peer)
  }
}
