// What this host itself kept of an operation, beside the kernel's receipt of it: every file of its journal by length and
// digest, and whether the broker's statement in it is the one that the kernel's receipt names. Shows no content.
import { decode } from '../protocol/codec.js'
import { sha256Hex } from '../protocol/digest.js'
import { BrokerError, isBrokerError } from '../protocol/errors.js'
import { failureReference, SignedExecutionFailureReceipt } from '../protocol/failure.js'
import type { KernelReceipt } from '../protocol/kernel-receipt.js'
import { receiptReference, SignedExecutionReceipt } from '../protocol/receipt.js'
import type { JournalDocument, JournalFrame } from '../host/journal.js'
import { RetainedJournal } from '../host/retained-journal.js'
import type { HostSession } from '../host/session.js'

const DOCUMENTS: readonly JournalDocument[] = ['registration.json', 'receipt.json', 'outcome.json']
const FRAMES: readonly JournalFrame[] = ['request.frame', 'response.frame']

export interface KeptFile {
  readonly name: string
  readonly bytes: number
  readonly sha256: string
}

export interface Transcript {
  readonly journal: string
  readonly files: readonly KeptFile[]
}

/**
 * Reads this host's journal of an operation and holds it against the kernel's receipt.
 * @throws BrokerError `operation_state` where nothing was prepared, `custody` without a journal of ours, `receipt_refused`
 * when the broker's statement in it is another one than the receipt names.
 */
export async function readTranscript(
  session: HostSession,
  operationId: string,
  receipt: KernelReceipt,
): Promise<Transcript> {
  const { attemptId } = await session.kernel.call('inspect', { operationId })
  if (attemptId === null) {
    throw new BrokerError(
      'operation_state',
      `transcript of ${operationId} refused: expected an operation that was prepared, got one of which no journal was made`,
      { operationId },
    )
  }
  const journal = await RetainedJournal.open(session, attemptId)
  const files: KeptFile[] = []
  for (const name of FRAMES) await keep(files, name, () => journal.readFrame(name))
  for (const name of DOCUMENTS) {
    const bytes = await keep(files, name, () => journal.readDocument(name))
    if (name === 'receipt.json' && bytes !== undefined) assertNamed(bytes, receipt)
  }
  return { journal: journal.directory, files }
}

/** What a run did not live to keep is left out. */
async function keep(
  files: KeptFile[],
  name: string,
  read: () => Promise<Uint8Array>,
): Promise<Uint8Array | undefined> {
  try {
    const bytes = await read()
    files.push({ name, bytes: bytes.length, sha256: sha256Hex(bytes) })
    return bytes
  } catch (error) {
    if (isAbsent(error)) return undefined
    throw error
  }
}

function isAbsent(error: unknown): boolean {
  if (!isBrokerError(error) || !(error.cause instanceof Error)) return false
  return (error.cause as NodeJS.ErrnoException).code === 'ENOENT'
}

interface Named {
  readonly broker_record?: { readonly kind: string; readonly reference: string }
}

/** An operation that ended without a record, or has not ended, names none. */
function assertNamed(bytes: Uint8Array, { metadata }: KernelReceipt): void {
  const named = (metadata as Named | undefined)?.broker_record
  if (named === undefined) return
  const reference =
    named.kind === 'receipt'
      ? receiptReference(decode(SignedExecutionReceipt, bytes, 'receipt.json'))
      : failureReference(decode(SignedExecutionFailureReceipt, bytes, 'receipt.json'))
  if (reference === named.reference) return
  throw new BrokerError(
    'receipt_refused',
    "receipt.json refused: expected the broker's statement that the kernel's receipt names, got another; stop and compare both",
  )
}
