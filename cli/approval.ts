// chio approval list | show | key: what waits for approvers, exactly what each operation would do, and a key for whoever
// is to approve. Nothing here approves anything.
import { resolve } from 'node:path'
import type { ApprovalView } from '../protocol/approval-rpc.js'
import { makeKeyFile } from '../system/key-file.js'
import { caseLines, readCase } from './approval-case.js'
import { beside } from './columns.js'
import { readPins } from './host-session.js'
import { withKernel } from './kernel-call.js'
import { parseLimit, parseOperationId } from './operation-argument.js'
import { type CommonOptions, print } from './output.js'
import { findState, layoutOfState } from './state.js'

export interface ApprovalListOptions extends CommonOptions {
  readonly limit: string
}

/** Lists what waits: a client's own; everything for a peer without a caller key, such as root. */
export async function listApprovals(options: ApprovalListOptions): Promise<void> {
  const limit = parseLimit(options.limit)
  const { approvals } = await withKernel(options, kernel => kernel.call('approval_list', { limit }))
  const lines = approvals.flatMap(listLines)
  print(
    options,
    { schema: 'chio.approval-list.v1', approvals },
    lines.length > 0 ? lines : ['Nothing waits for approvers.'],
  )
}

/** The id has a line of its own: it is there to be copied. */
function listLines(view: ApprovalView): string[] {
  const until = new Date(view.deadlineUnixSeconds * 1_000).toISOString()
  const said = `${view.state}, ${view.approved} of ${view.required}, until ${until}, grant ${view.grantId}`
  return [view.operationId, ...beside('', said, 2)]
}

/** Shows one operation as its approvers sign for it. */
export async function showApproval(id: string, options: CommonOptions): Promise<void> {
  const operationId = parseOperationId(id)
  const pins = readPins(layoutOfState(findState(options.state)))
  const shown = await withKernel(options, kernel => readCase(kernel, pins, operationId))
  print(options, { schema: 'chio.approval-case.v1', ...shown }, caseLines(shown))
}

/** Makes a key file, 0600. Its public half goes into the kernel's configuration: chio init --approver. */
export async function makeApproverKey(file: string, options: CommonOptions): Promise<void> {
  const path = resolve(file)
  const key = makeKeyFile(path)
  key.wipe()
  const { publicKey } = key
  print(options, { schema: 'chio.approver-key.v1', file: path, publicKey }, [publicKey])
}
