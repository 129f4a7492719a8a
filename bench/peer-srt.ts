// Owns the sandbox runtime as a rival: its npm package in a folder of its own, the programs that it needs beside it
// where the system lacks them, and one run of its command.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { unpackPackages } from './debian-packages.js'
import { lastWords, peerFolder, PeerMissing } from './peer-missing.js'

const PACKAGE = '@anthropic-ai/sandbox-runtime'
/** The newest that runs on Node 20. */
const VERSION = '0.0.78'
/** What it calls by name, with the library that a bare system lacks. */
const NEEDED = { programs: ['socat', 'rg'], packages: ['socat', 'libwrap0', 'ripgrep'] }

export interface SandboxRuntime {
  readonly version: string
  /** From the start of its command to its end, `true` run inside. */
  runTrue(): Promise<void>
}

/** @throws PeerMissing with the reason. */
export function sandboxRuntime(): SandboxRuntime {
  const folder = peerFolder('srt')
  const place = join(folder, 'node_modules', ...PACKAGE.split('/'))
  try {
    if (!existsSync(place)) install(folder)
    const environment = environmentWith(folder)
    const { version, bin } = JSON.parse(readFileSync(join(place, 'package.json'), 'utf8')) as {
      version: string
      bin: { srt: string }
    }
    const command = join(place, bin.srt)
    // Once and untimed: what it still lacks here, it says itself.
    execFileSync(process.execPath, [command, 'true'], { stdio: 'pipe', env: environment })
    return { version, runTrue: () => run(command, environment) }
  } catch (error) {
    throw new PeerMissing(`${PACKAGE} is not here or does not run: ${lastWords(error)}`)
  }
}

function install(folder: string): void {
  mkdirSync(folder, { recursive: true })
  const options = ['--no-save', '--no-package-lock', '--ignore-scripts', '--no-audit', '--no-fund']
  execFileSync('npm', ['install', '--prefix', folder, ...options, `${PACKAGE}@${VERSION}`], { stdio: 'pipe' })
}

/** Its programs, from the system where it has them, else unpacked beside it. */
function environmentWith(folder: string): NodeJS.ProcessEnv {
  const path = process.env['PATH'] ?? '/usr/bin:/bin'
  const isOnPath = (name: string): boolean => path.split(':').some(place => existsSync(join(place, name)))
  if (NEEDED.programs.every(isOnPath)) return { ...process.env }
  const system = join(folder, 'system')
  if (!existsSync(system)) unpackPackages(system, NEEDED.packages)
  const libraries = join(system, 'usr', 'lib')
  const [triplet = ''] = readdirSync(libraries)
  return {
    ...process.env,
    PATH: `${path}:${join(system, 'usr', 'bin')}`,
    LD_LIBRARY_PATH: join(libraries, triplet),
  }
}

async function run(command: string, env: NodeJS.ProcessEnv): Promise<void> {
  const child = spawn(process.execPath, [command, 'true'], { stdio: 'ignore', env })
  const [code] = (await once(child, 'exit')) as [number | null]
  if (code !== 0) throw new Error(`srt true: expected exit 0, got ${code}`)
}
