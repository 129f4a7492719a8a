// Owns where the provider of a run is reached: a name of its own on loopback, and one path.
import type { LocalProvider } from '../system/installation-plan.js'

export const PROVIDER_HOST = 'issues.localhost'
export const PROVIDER_PATH = '/issues'
export const PROVIDER_ADDRESS = '127.0.0.1'

/** How both sides reach it. */
export interface ProviderAddress {
  readonly port: number
  readonly caPem: string
}

export function localProviderOf({ port, caPem }: ProviderAddress): LocalProvider {
  return { host: PROVIDER_HOST, port, address: PROVIDER_ADDRESS, caPem }
}

export function providerUrl({ port }: ProviderAddress): string {
  return `https://${PROVIDER_HOST}:${port}${PROVIDER_PATH}`
}
