// chio receipt show: one receipt of the kernel's log, verified as it comes, with where it stands and what proves that.
// A client is shown its own receipts; the kernel's own user and root, all.
import { type Checkpoint, verifyCheckpoint } from '../protocol/checkpoint.js'
import { BrokerError } from '../protocol/errors.js'
import { type KernelReceipt, verifyKernelReceipt } from '../protocol/kernel-receipt.js'
import type { PublicKey } from '../protocol/keys.js'
import { verifyInclusion } from '../protocol/log-proof.js'
import type { ReceiptCase, ReceiptName } from '../protocol/receipt-rpc.js'
import { beside } from './columns.js'
import { openHostSession, readPins } from './host-session.js'
import { withKernel } from './kernel-call.js'
import { given, type CommonOptions, print } from './output.js'
import { readTranscript, type Transcript } from './receipt-transcript.js'
import { findState, layoutOfState } from './state.js'

const LABEL_COLUMNS = 12

export interface ShowOptions extends CommonOptions {
  readonly operation?: string
  readonly transcript?: boolean
}

/** Shows the receipt of an id, or the newest decision about an operation. */
export async function showReceipt(id: string | undefined, options: ShowOptions): Promise<void> {
  const name = nameOf(id, options.operation)
  const { kernelKey } = readPins(layoutOfState(findState(options.state)))
  const shown = await withKernel(options, kernel => kernel.call('show_receipt', name))
  verifyCase(shown, kernelKey)
  const { entrySeq, inclusion, receipt } = shown
  const transcript = options.transcript === true ? await transcriptOf(options, shown, name) : null
  const document = { schema: 'chio.receipt-shown.v1', entrySeq, inclusion, receipt, transcript }
  print(options, document, [...linesOf(shown), ...transcriptLines(transcript)])
}

/** As this user's own host: nobody else's journal can be read. */
async function transcriptOf(
  options: ShowOptions,
  { receipt }: ReceiptCase,
  { operationId }: ReceiptName,
): Promise<Transcript> {
  if (operationId === null)
    throw new BrokerError('usage', '--transcript refused: expected --operation with it, got none')
  const session = openHostSession(layoutOfState(findState(options.state)))
  try {
    return await readTranscript(session, operationId, receipt)
  } finally {
    session.close()
  }
}

function transcriptLines(transcript: Transcript | null): string[] {
  if (transcript === null) return []
  const { files, journal } = transcript
  return [
    `This host's own journal, which agrees with the receipt: ${journal}`,
    ...files.flatMap(({ bytes, name, sha256 }) => [`  ${name}, ${bytes} bytes`, `    ${sha256}`]),
  ]
}

function nameOf(id: string | undefined, operation: string | undefined): ReceiptName {
  const isOne = (id === undefined) !== (operation === undefined)
  const name = id ?? operation ?? ''
  if (isOne && /^[0-9a-f]{64}$/.test(name)) return { operationId: operation ?? null, receiptId: id ?? null }
  throw new BrokerError(
    'usage',
    `receipt refused: expected its id, or --operation with one, of 64 lower-case hex digits, got ${id !== undefined && operation !== undefined ? 'both' : given(id ?? operation)}`,
  )
}

/** Whatever the kernel's socket says is held against the key that is pinned. */
function verifyCase({ entrySeq, inclusion, receipt }: ReceiptCase, pinned: PublicKey): void {
  verifyKernelReceipt(receipt, pinned)
  if (inclusion === null) return
  const { checkpoint, proof } = inclusion
  verifyInclusion(proof, receipt, verifyCheckpoint(checkpoint, pinned))
  if (proof.receipt_seq !== entrySeq) {
    throw new BrokerError(
      'log_refused',
      `receipt refused: expected the proof of entry ${entrySeq}, got another`,
    )
  }
}

function linesOf({ entrySeq, inclusion, receipt }: ReceiptCase): string[] {
  const rows: [label: string, text: string][] = [
    ['receipt', receipt.id],
    ['decision', decisionText(receipt)],
    ['when', new Date(receipt.timestamp * 1_000).toISOString()],
    ['capability', receipt.capability_id],
    ['tool', `${receipt.tool_server} ${receipt.tool_name}`],
    ['entry', `${entrySeq} of the log, ${coverText(inclusion?.checkpoint)}`],
    ['signed by', receipt.kernel_key],
  ]
  return [
    ...rows.flatMap(([label, text]) => beside(label, text, LABEL_COLUMNS)),
    'Signature, signer pin and action hash verified; --json has the whole receipt.',
  ]
}

function decisionText({ decision }: KernelReceipt): string {
  if (decision === undefined) return 'none: an observation'
  if (decision.verdict === 'allow') return 'allow'
  const who = decision.verdict === 'deny' ? ` by ${decision.guard}` : ''
  return `${decision.verdict}${who}: ${decision.reason}`
}

function coverText(checkpoint: Checkpoint | undefined): string {
  return checkpoint === undefined
    ? 'not covered by a checkpoint yet'
    : `proven under checkpoint ${checkpoint.body.checkpoint_seq}`
}
