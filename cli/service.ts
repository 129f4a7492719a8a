// chio service install: the program where every user can read it and nobody can change it, and the units that serve it.
// Starts and enables nothing: which of the units an operator wants is the operator's word.
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { packageRoot } from '../native/index.js'
import { BrokerError } from '../protocol/errors.js'
import { renewCopy } from '../selftest/program-copy.js'
import { type CommonOptions, print } from './output.js'
import { layoutOfState, SYSTEM_STATE } from './state.js'

const PROGRAM = '/usr/lib/chio'
const PAGE = '/usr/share/doc/chio/service.md'
const UNITS = '/etc/systemd/system'
/** What the units name until they are installed. */
const NODE_OF_UNITS = '/usr/bin/node'
/** The units hide everything else from the daemons, or forbid to run it. */
const NODE_BELOW = '/usr/'
/** What users call, below the program. The daemons are called by their units. */
const LINKS: Readonly<Record<string, string>> = {
  '/usr/local/bin/chio': 'dist/bin/chio.js',
  '/usr/local/bin/chio-exec': 'native/build/Release/chio-exec',
}
const BOOTED_WITH_SYSTEMD = '/run/systemd/system'

export interface InstallOptions extends CommonOptions {
  /** Everything goes below it, as for a package; the units name the paths without it. */
  readonly root?: string
}

/** Installs program and units. Repeating it is the upgrade. */
export function installService(options: InstallOptions): void {
  const root = resolve(options.root ?? '/')
  if (root === '/' && process.geteuid?.() !== 0) {
    throw new BrokerError(
      'usage',
      'install refused: expected root, or --root with a folder to install into, got another user and no folder',
    )
  }
  if (!existsSync(join(packageRoot(), 'systemd'))) {
    throw new BrokerError(
      'usage',
      'install refused: expected the checkout, got what it installed; run it there',
    )
  }
  const node = nodeForUnits()
  const privateMask = process.umask(0o022)
  try {
    installProgram(root)
    const { links, kept } = installLinks(root)
    const files = [PROGRAM, PAGE, ...links, ...installUnits(root, node)].map(path => join(root, path))
    const isReloaded = root === '/' && reload()
    const document = {
      schema: 'chio.service-install.v1',
      root,
      node,
      files,
      kept: kept.map(path => join(root, path)),
      isReloaded,
    }
    print(options, document, [
      ...files,
      ...kept.map(path => keptLine(root, path)),
      ...nextLines(root, isReloaded),
    ])
  } finally {
    process.umask(privateMask)
  }
}

function keptLine(root: string, path: string): string {
  return `Kept: ${join(root, path)}, which is not ours; our link would be to ${join(PROGRAM, LINKS[path] ?? '')}`
}

/** Below a folder nothing is served here: what is left is for the machine whose / that folder becomes. */
function nextLines(root: string, isReloaded: boolean): string[] {
  const systemctl = 'systemctl enable --now chio-kerneld.service chio-brokerd.service'
  const reloading = isReloaded ? [] : RELOADING.map(words => words.join(' '))
  if (root !== '/') {
    return [
      `Next, on the machine whose / becomes ${root}, as root:`,
      ...reloading,
      'chio init --client USER, unless it was done',
      systemctl,
    ]
  }
  const isServed = existsSync(layoutOfState(SYSTEM_STATE).broker.config)
  const steps = [...reloading, ...(isServed ? [] : ['chio init --client USER']), systemctl]
  return steps.map(step => `Next: ${step}`)
}

function nodeForUnits(): string {
  const node = realpathSync(process.execPath)
  if (node.startsWith(NODE_BELOW)) return node
  throw new BrokerError(
    'custody',
    `install refused: expected Node below ${NODE_BELOW}, which is all that the units let a daemon run, got ${node}; install Node there, such as in /usr/local`,
  )
}

function installProgram(root: string): void {
  const program = join(root, PROGRAM)
  mkdirSync(dirname(program), { recursive: true })
  renewCopy(packageRoot(), program)
  place(join(root, PAGE), readFileSync(join(packageRoot(), 'docs', 'service.md')))
}

/** A link of ours is renewed; what an administrator put there stays. */
function installLinks(root: string): { links: string[]; kept: string[] } {
  const paths = Object.keys(LINKS)
  const links = paths.filter(path => isFreeOrOurs(root, path))
  for (const path of links) link(join(root, path), join(PROGRAM, LINKS[path] ?? ''))
  return { links, kept: paths.filter(path => !links.includes(path)) }
}

/** Ours is a link to below the program, as it reads where the program is used: without the folder of a package. */
function isFreeOrOurs(root: string, path: string): boolean {
  const stands = lstatSync(join(root, path), { throwIfNoEntry: false })
  if (stands === undefined) return true
  if (!stands.isSymbolicLink()) return false
  return resolve(dirname(path), readlinkSync(join(root, path))).startsWith(`${PROGRAM}/`)
}

function link(path: string, target: string): void {
  mkdirSync(dirname(path), { recursive: true })
  rmSync(path, { force: true })
  symlinkSync(target, path)
}

function installUnits(root: string, node: string): string[] {
  const source = join(packageRoot(), 'systemd')
  return readdirSync(source)
    .sort()
    .map(name => {
      const path = installedPath(name)
      const text = readFileSync(join(source, name), 'utf8')
      place(join(root, path), text.replaceAll(`=${NODE_OF_UNITS} `, `=${node} `))
      return path
    })
}

function installedPath(name: string): string {
  if (name === 'chio.sysusers') return '/etc/sysusers.d/chio.conf'
  if (name === 'chio.tmpfiles') return '/etc/tmpfiles.d/chio.conf'
  return join(UNITS, name)
}

/** Whole or not at all: written beside its place and renamed. */
function place(path: string, content: string | Uint8Array): void {
  mkdirSync(dirname(path), { recursive: true })
  const fresh = `${path}.new`
  rmSync(fresh, { force: true })
  writeFileSync(fresh, content, { flag: 'wx', mode: 0o644 })
  chmodSync(fresh, 0o644)
  renameSync(fresh, path)
}

/** What a machine that runs systemd has to be told after the files are there. */
const RELOADING = [
  ['systemctl', 'daemon-reload'],
  ['systemd-sysusers', 'chio.conf'],
  ['systemd-tmpfiles', '--create', 'chio.conf'],
] as const

/** A machine that runs systemd learns of the units now, makes the users and the directories of the sockets. */
function reload(): boolean {
  if (!existsSync(BOOTED_WITH_SYSTEMD)) return false
  for (const [program, ...args] of RELOADING) {
    execFileSync(program, args, { stdio: ['ignore', 'ignore', 'inherit'] })
  }
  return true
}
