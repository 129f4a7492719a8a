// Linux, its version, the architecture, and the Node that runs this.
// Source: close_range(2) CLOSE_RANGE_CLOEXEC (5.11), pidfd_open(2) (5.3), SECCOMP_USER_NOTIF_FLAG_CONTINUE (5.5).
import { release } from 'node:os'
import { type Check, missing, ok } from './check.js'

const NAME = 'platform'
const ARCHITECTURES = ['x64', 'arm64']
const LINUX_MINIMUM = [5, 10]
const NODE_MINIMUM = [20, 19]

export interface PlatformFound {
  readonly platform: string
  readonly architecture: string
  readonly kernelRelease: string
  readonly nodeVersion: string
}

export function findPlatform(): PlatformFound {
  const { platform, arch, versions } = process
  return { platform, architecture: arch, kernelRelease: release(), nodeVersion: versions.node }
}

export function judgePlatform(found: PlatformFound): Check {
  const { architecture, kernelRelease, nodeVersion, platform } = found
  const text = `${platform} ${kernelRelease} on ${architecture}, Node ${nodeVersion}`
  if (platform !== 'linux' || !isAtLeast(kernelRelease, LINUX_MINIMUM))
    return missing(NAME, text, 'run on Linux 5.10 or later')
  if (!ARCHITECTURES.includes(architecture)) return missing(NAME, text, 'run on x86_64 or aarch64')
  if (!isAtLeast(nodeVersion, NODE_MINIMUM)) return missing(NAME, text, 'run with Node 20.19 or later')
  return ok(NAME, text)
}

/** Compares the leading numbers of a version. */
export function isAtLeast(version: string, minimum: readonly number[]): boolean {
  const parts = /^\d+(?:\.\d+)*/.exec(version)?.[0].split('.').map(Number) ?? []
  for (const [index, wanted] of minimum.entries()) {
    const part = parts[index] ?? 0
    if (part !== wanted) return part > wanted
  }
  return parts.length > 0
}
