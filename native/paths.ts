/**
 * Where the package and its native parts lie: found from this file, whether it runs as source or from dist/.
 * Never reads the environment or the working directory, so neither can point us at another binary.
 */
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const NATIVE_PROGRAMS = ['cage-init', 'chio-exec', 'cage-probe'] as const
export type NativeProgram = (typeof NATIVE_PROGRAMS)[number]

function findPackageRoot(): string {
  const here = dirname(fileURLToPath(import.meta.url))
  for (const candidate of [join(here, '..'), join(here, '..', '..')]) {
    if (existsSync(join(candidate, 'package.json'))) return candidate
  }
  throw new Error(
    `package root not found: expected package.json one or two folders above ${here}; install again`,
  )
}

const root = findPackageRoot()

/** The folder that holds package.json. */
export function packageRoot(): string {
  return root
}

/** Absolute path of a built static program. Whether it is there is for the caller that opens it. */
export function nativePath(program: NativeProgram): string {
  if (!NATIVE_PROGRAMS.includes(program)) {
    throw new RangeError(`"program" expected one of ${NATIVE_PROGRAMS.join(', ')}, got ${String(program)}`)
  }
  return join(root, 'native', 'build', 'Release', program)
}

/** Absolute path of the addon itself. */
export function addonPath(): string {
  return join(root, 'native', 'build', 'Release', 'chio_native.node')
}
