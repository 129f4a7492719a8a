// Owns every answer of the sidecar that refuses: status and fixed body. Must never depend on more than which refusal it
// is: no cause, no value, no name that a client sent.
// Source: the fixed bodies of the caller routes and of the control gate; the others are ours, in the same form.
import { CALLER_REFUSALS, type FixedRefusal } from '../protocol/caller-http.js'
import { canonicalBytes } from '../protocol/canonical.js'

export const SIDECAR_REFUSALS = {
  ...CALLER_REFUSALS,
  failed: fixed(500, 'chio_mediation_failed', 'mediated authorization failed'),
  headersTooLarge: fixed(
    431,
    'chio_proxy_headers_too_large',
    'header fields exceed the control credential scan budget',
  ),
  host: fixed(421, 'chio_host_refused', 'expected the exact host and port of this sidecar'),
  origin: fixed(403, 'chio_origin_refused', 'requests of web pages are refused'),
  timeout: fixed(408, 'chio_request_timeout', 'the request did not arrive in its time'),
  type: fixed(415, 'chio_content_type_refused', 'expected one application/json body without an encoding'),
  unknownRoute: fixed(404, 'chio_route_unknown', 'no such route'),
  wrongRoute: fixed(
    403,
    'chio_control_credential_wrong_route',
    'sidecar control credentials belong to the control routes alone',
  ),
} as const satisfies Record<string, FixedRefusal>

export type RefusalName = keyof typeof SIDECAR_REFUSALS

function fixed(status: number, error: string, message: string): FixedRefusal {
  return { status, body: { error, message } }
}

/** The same bytes for every cause. */
const BODIES = new Map(
  Object.entries(SIDECAR_REFUSALS).map(([name, { body }]) => [name, Buffer.from(canonicalBytes(body))]),
)

export function refusalBytes(name: RefusalName): Buffer {
  return BODIES.get(name) as Buffer
}
