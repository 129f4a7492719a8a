// Owns what the broker knows of an execute request independently of it: issuer, audience, adapter, skew.
import type { ExecuteRequestPins } from '../protocol/execute-request.js'
import type { BrokerdConfig } from './config.js'

export function executePins(config: BrokerdConfig): ExecuteRequestPins {
  return {
    issuer: config.capabilityIssuer,
    audience: config.audience,
    adapter: config.adapter,
    clockSkewSeconds: config.clockSkewSeconds,
  }
}
