// review-note report: the kernel takes the executor's report and ends the original operation by it; the guarded value is
// shown only then.
// Must never: call the executor, or change a file where it refuses.
// Source: `review-note report`: an allowed verdict, a completed state, a guarded value.
import { CallerAuthorization } from '../../protocol/caller-authorization.js'
import { CallerReport } from '../../protocol/caller-report.js'
import { canonicalBytes } from '../../protocol/canonical.js'
import { decode } from '../../protocol/codec.js'
import { BrokerError } from '../../protocol/errors.js'
import { KernelReceipt } from '../../protocol/kernel-receipt.js'
import type { ReportAnswer } from '../../protocol/tool-call-rpc.js'
import type { Act } from './act.js'
import { refused } from './authorize.js'
import { withHostKernel } from './host-kernel.js'
import { AppendedNote } from './note.js'
import { requestFiles } from './place.js'
import { assertSame, readDocument } from './retained.js'

/** The same report again is answered with the same receipt. @throws BrokerError for everything but a completed one. */
export async function report(act: Act, key: string): Promise<AppendedNote> {
  const { place, retain } = act
  const files = requestFiles(place, key)
  const authorization = readDocument(files.authorization, CallerAuthorization, `authorize ${key} first`)
  const signed = readDocument(files.report, CallerReport, `execute ${key} first`)
  return withHostKernel(act, async ({ kernel }) => {
    const answer = await kernel.calls.reconcile(null, { authorization, report: signed })
    const { receipt, value } = completed(answer)
    // Both are compared before the first is written.
    assertSame(files.completedReceipt, KernelReceipt, receipt)
    assertSame(files.result, AppendedNote, value)
    await retain.once(files.completedReceipt, KernelReceipt, receipt)
    await retain.once(files.result, AppendedNote, value)
    return value
  })
}

function completed(answer: ReportAnswer): { readonly receipt: KernelReceipt; readonly value: AppendedNote } {
  const { operationId, output, receipt, state, verdict } = answer
  if (verdict !== 'allow') throw refused('report', answer)
  if (state !== 'completed' || receipt === null || output === null) {
    throw new BrokerError(
      'operation_state',
      `report refused: expected a completed operation with a receipt and a guarded value, got ${state} of ${operationId}; the operation stays as it is`,
      { operationId: operationId ?? undefined },
    )
  }
  return { receipt, value: decode(AppendedNote, canonicalBytes(output.value), 'guarded value') }
}
