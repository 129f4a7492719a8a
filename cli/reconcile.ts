// chio operation reconcile: an administrator's signed statement of what the provider really did. It is kept for ever
// beside the operation and changes no state: what was not known at its end stays what was recorded then.
import { BrokerError } from '../protocol/errors.js'
import { PROVIDER_DEEDS, type Reconcile } from '../protocol/operation-rpc.js'
import { asAdministrator } from './administrator.js'
import { parseOperationId } from './operation-argument.js'
import { given, type CommonOptions, print } from './output.js'
import { findState, layoutOfState } from './state.js'

const MAXIMUM_STATEMENT_CHARACTERS = 1_024

export interface ReconcileOptions extends CommonOptions {
  readonly provider: string
  readonly statement: string
}

export async function reconcileOperation(id: string, options: ReconcileOptions): Promise<void> {
  const stated = statedOf(id, options)
  const layout = layoutOfState(findState(options.state))
  const commitIndex = await asAdministrator(layout, administrator => administrator.reconcile(stated))
  const document = { schema: 'chio.operation-reconciled.v1', commitIndex, stated }
  print(options, document, [
    `${stated.operationId}: statement kept, commit ${commitIndex}; its state is unchanged`,
  ])
}

function statedOf(id: string, { provider: said, statement }: ReconcileOptions): Reconcile {
  const operationId = parseOperationId(id)
  const provider = PROVIDER_DEEDS.find(deed => deed.replaceAll('_', '-') === said)
  if (provider === undefined) {
    throw new BrokerError(
      'usage',
      `--provider refused: expected acted, did-not-act or not-known, got ${given(said)}`,
    )
  }
  if (statement.trim() !== statement || statement === '' || statement.length > MAXIMUM_STATEMENT_CHARACTERS) {
    throw new BrokerError(
      'usage',
      `--statement refused: expected 1 to ${MAXIMUM_STATEMENT_CHARACTERS} characters without outer spaces, got ${statement.length}`,
    )
  }
  return { operationId, provider, statement }
}
