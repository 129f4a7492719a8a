// Owns the fuzzing of sliced reading and writing: large documents, of which byte strings are nearly all. Whatever
// the text, the answer is that of reading it at once, and so are the bytes that are written.
import { canonicalBytes } from '../../protocol/canonical.js'
import { type Codec, decode, decodeSliced, encode, encodeSliced } from '../../protocol/codec.js'
import { AuthenticatedIpcRequest, IpcResponse } from '../../protocol/envelope.js'
import { BrokerRequest } from '../../protocol/execute-request.js'
import { BrokerExecuteResponse } from '../../protocol/execute-response.js'
import { isBrokerError } from '../../protocol/errors.js'
import { codecSamples } from './codec-catalogue.js'
import { labelled, readLabel } from './label.js'
import { mutateDocument, plain } from './target-codec.js'
import { accepted, FuzzFinding, type FuzzTarget, refusedAs, type Verdict } from './target.js'
import { shapeOf } from './value-shape.js'

const LARGE: Readonly<Record<string, Codec<unknown>>> = {
  AuthenticatedIpcRequest,
  BrokerExecuteResponse,
  BrokerRequest,
  IpcResponse,
}
/** Below 128 KiB of text nothing is sliced. */
const BYTES_OF_LARGE_STRING = [3_000, 40_000, 70_000]

export const slicedTarget: FuzzTarget = {
  name: 'sliced',
  reads: 'large documents in slices, against reading them at once',
  maximumInputBytes: 1_048_576,
  seeds,
  mutate: mutateDocument,
  check: checkSliced,
}

function seeds(): Uint8Array[] {
  const samples = codecSamples()
  return Object.entries(LARGE).flatMap(([name, codec]) =>
    (samples.get(name) ?? [])
      .slice(0, 2)
      .flatMap(text =>
        BYTES_OF_LARGE_STRING.map(bytes => labelled(name, enlarged(decode(codec, text, name), bytes))),
      ),
  )
}

/** The document with its byte strings of this length. */
function enlarged(document: unknown, bytes: number): Uint8Array {
  const members = Object.entries(document as object).map(([name, member]: [string, unknown]) => [
    name,
    member instanceof Uint8Array ? Uint8Array.from({ length: bytes }, (_unused, at) => at * 7) : member,
  ])
  return canonicalBytes(plain(Object.fromEntries(members)))
}

async function checkSliced(input: Uint8Array): Promise<Verdict> {
  const { label, rest } = readLabel(input)
  const codec = LARGE[label]
  if (codec === undefined) return { word: 'no codec', signal: 'no codec' }
  let turns = 0
  const yieldNow = (): Promise<void> => {
    turns++
    return Promise.resolve()
  }
  const [whole, sliced] = [
    outcome(() => decode(codec, rest, label)),
    decodeSliced(codec, rest, label, yieldNow),
  ]
  const [atOnce, inSlices] = [await whole, await outcome(() => sliced)]
  if (atOnce.error !== undefined || inSlices.error !== undefined) return bothRefuse(label, atOnce, inSlices)
  const bytes = encode(codec, inSlices.value)
  if (Buffer.compare(bytes, rest) !== 0) throw new FuzzFinding(`${label} read in slices writes other bytes`)
  if (Buffer.compare(encode(codec, atOnce.value), bytes) !== 0)
    throw new FuzzFinding(`${label} read in slices is another value`)
  if (Buffer.compare(await encodeSliced(codec, atOnce.value, yieldNow), bytes) !== 0)
    throw new FuzzFinding(`${label} written in slices has other bytes`)
  return accepted(`${label} ${shapeOf(atOnce.value)} ${turns}`)
}

interface Reading {
  readonly value?: unknown
  readonly error?: unknown
}

async function outcome(read: () => unknown): Promise<Reading> {
  try {
    return { value: await read() }
  } catch (error) {
    return { error }
  }
}

function bothRefuse(label: string, atOnce: Reading, inSlices: Reading): Verdict {
  const { word, signal } = refusedAs(atOnce.error ?? inSlices.error, 'invalid_request')
  if (placeOf(atOnce.error) !== placeOf(inSlices.error))
    throw new FuzzFinding(`${label} in slices is refused in another member`)
  return { word, signal: `${label} ${signal}` }
}

/** The member that a sentence names. A byte string too long is met at another offset, so that is left out. */
function placeOf(error: unknown): string | undefined {
  return isBrokerError(error) ? / in (\S+) at byte/.exec(error.message)?.[1] : 'read'
}
