// review-note execute: the executor's part. It opens its own ledger and its own key, and nothing of the kernel: what it
// expects and whom it believes stand in files that the host wrote before there was an authorization.
// Must never: append before the claim is on disk, append twice, or make a ledger where one is missing.
// Source: `review-note execute`; execute_once of the caller execution ledger.
import { ExecutorLedger } from '../../executor/index.js'
import { bootIdentity } from '../../native/clock.js'
import { CallerAuthorization } from '../../protocol/caller-authorization.js'
import { CallerReport } from '../../protocol/caller-report.js'
import { admitPublicKey, type PublicKey } from '../../protocol/keys.js'
import { cutpointsOf } from '../../system/cutpoints.js'
import { readRetainedFile } from '../../system/retained-file.js'
import type { Act } from './act.js'
import { readPin, readSigningKey } from './host-kernel.js'
import { ReviewJournal } from './journal.js'
import { appendedNote } from './note.js'
import { type Place, requestFiles } from './place.js'
import { noteOf, readRequest } from './request.js'
import { readDocument } from './retained.js'

/** 64 hex digits and a line end. */
const KERNEL_KEY_FILE_BYTES = 65
const GROUP_OR_OTHERS_WRITE = 0o022

export interface Executed {
  readonly claimId: string
  readonly operationId: string
}

/**
 * @param isReplyDropped leaves the retained report undelivered, as an executor that ended too early would.
 * @throws BrokerError what the ledger or the journal refuses.
 */
export async function execute(act: Act, key: string, isReplyDropped: boolean): Promise<Executed> {
  const { place, retain } = act
  const files = requestFiles(place, key)
  const { expected, request } = readRequest(files)
  const authorization = readDocument(files.authorization, CallerAuthorization, `authorize ${key} first`)
  const note = appendedNote(noteOf(request), expected.operation_id)
  const signed = await executedOnce(act, authorization, { invocation: expected, note })
  if (!isReplyDropped) await retain.once(files.report, CallerReport, signed)
  return { claimId: signed.report.claim_id, operationId: expected.operation_id }
}

interface Expected {
  readonly invocation: ReturnType<typeof readRequest>['expected']
  readonly note: ReturnType<typeof appendedNote>
}

async function executedOnce(
  { atCutpoint, clock, place }: Act,
  authorization: CallerAuthorization,
  { invocation, note }: Expected,
): Promise<CallerReport> {
  const key = readSigningKey(place.executorKey, 'executor key')
  const options = { atCutpoint: cutpointsOf('executor', atCutpoint), bootId: bootIdentity(), clock }
  try {
    const ledger = await ExecutorLedger.open(place.ledger, readPin(place), options)
    const journal = await ReviewJournal.open(place.journal, { atCutpoint, clock })
    try {
      journal.assertTakes(note)
      const terms = { invocation, kernelKey: readKernelKey(place), key }
      const { signed } = await ledger.executeOnce(authorization, terms, async () => {
        await journal.append(note)
        return { output: { ...note }, realized_cost: null }
      })
      return signed
    } finally {
      journal.close()
    }
  } finally {
    key.wipe()
  }
}

/** The kernel that the executor believes. */
function readKernelKey({ host }: Place): PublicKey {
  const line = readRetainedFile(host.kernelPublicKey, {
    forbiddenMode: GROUP_OR_OTHERS_WRITE,
    maximumBytes: KERNEL_KEY_FILE_BYTES,
    ownerUid: process.geteuid?.() ?? 0,
  })
  return admitPublicKey(Buffer.from(line).toString('latin1').replace(/\n$/, ''), 'kernel.pub')
}
