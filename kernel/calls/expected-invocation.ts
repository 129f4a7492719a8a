// Owns what an executor has to be told to expect of one call: ids and digests that follow from the host's own request, so
// that an authorization that comes later cannot choose them.
// Must never: take anything from an authorization. Source: the expected invocation of caller delivery.
import type { CallerExecutor, CallerInvocation } from '../../protocol/caller-authorization.js'
import { valueHash } from '../../protocol/kernel-receipt.js'
import type { ToolCallRequest } from '../../protocol/tool-call.js'
import { bindCall, type CallBounds, type Coordinator } from './tool-call-terms.js'

/** The pinned executor, and what the kernel's configuration says of the tool: with another answer it is another operation. */
export interface ExpectedBounds extends CallBounds {
  readonly executor: CallerExecutor
}

/**
 * @param request as it is asked for: with its id, its token and its arguments
 * @param coordinator `authorityId` and `tenantScope` of the kernel's configuration
 */
export function expectedInvocation(
  request: ToolCallRequest,
  coordinator: Coordinator,
  bounds: ExpectedBounds,
): CallerInvocation {
  const binding = bindCall(request, coordinator, bounds)
  return {
    capability_digest: binding.authorization_capability_hash,
    capability_id: binding.capability_id,
    operation_id: binding.operation_id,
    parameters_digest: valueHash(request.params),
    request_binding_hash: binding.request_binding.request_binding_hash,
    request_id: binding.request_id,
    server_id: request.server_id,
    tool_name: request.tool,
  }
}
