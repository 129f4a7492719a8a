// Owns a launcher that hands on everything a careless shell, service or attacker could: open descriptors, a controlling
// terminal, canaries, fake programs first on the path, a hostile working folder, ignored and blocked signals, limits,
// umask, nice level. What it starts is a process of ours, as this or another user; it is ended by its pid.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export const CANARY = 'chio-canary-3b1f'
export const FAKE_PROGRAMS = ['bwrap', 'node', 'setpriv', 'sh', 'getent', 'id', 'openssl', 'useradd']

/** Makes everything and executes argv[2:]. The master of the terminal goes along, so that nothing hangs up. */
const LAUNCHER = `
import fcntl, json, os, pty, resource, signal, socket, sys, termios
junk = json.loads(sys.argv[1])
command = sys.argv[2:]
folder = junk['folder']
if 'descriptors' in junk:
    kinds = [
        lambda: os.open(folder + '/junk-file', os.O_RDWR | os.O_CREAT, 0o600),
        lambda: os.open(folder, os.O_RDONLY),
        lambda: os.pipe()[0],
        lambda: socket.socketpair()[0].detach(),
        lambda: socket.create_server(('127.0.0.1', 0)).detach(),
    ]
    gone = os.open(folder + '/junk-gone', os.O_RDWR | os.O_CREAT, 0o600)
    os.unlink(folder + '/junk-gone')
    made = [gone] + [kinds[n % len(kinds)]() for n in range(12)]
    for number in range(3, 301):
        if number not in made:
            os.dup2(made[number % len(made)], number)
    for number in range(3, 301):
        os.set_inheritable(number, True)
if 'terminal' in junk:
    os.setsid()
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    os.dup2(slave, 0)
    os.set_inheritable(master, True)
if 'signals' in junk:
    for number in junk['signals']:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, junk['signals'])
if 'nice' in junk:
    os.nice(junk['nice'])
for name, value in junk.get('limits', {}).items():
    pair = resource.getrlimit(getattr(resource, name)) if value is None else (value, value)
    resource.setrlimit(getattr(resource, name), (pair[1], pair[1]))
if 'umask' in junk:
    os.umask(junk['umask'])
if 'cwd' in junk:
    os.chdir(junk['cwd'])
if junk.get('removeCwd'):
    os.rmdir(junk['cwd'])
environment = {'PATH': junk['path'], 'HOME': folder, **junk.get('environment', {})}
for number in junk.get('closed', []):
    os.close(number)
os.execve(command[0], command, environment)
`

export interface Junk {
  readonly descriptors?: true
  readonly terminal?: true
  readonly signals?: readonly number[]
  readonly nice?: number
  /** null raises the soft limit to the hard one. */
  readonly limits?: Readonly<Record<string, number | null>>
  readonly umask?: number
  readonly cwd?: string
  readonly removeCwd?: true
  readonly environment?: Readonly<Record<string, string>>
  readonly closed?: readonly number[]
}

export interface JunkEnded {
  readonly status: number | null
  readonly signal: string | null
  readonly stdout: string
  readonly stderr: string
}

/** Folder for the junk itself, and for fakes that leave a mark where they are run. */
export class JunkLauncher {
  readonly folder: string
  readonly marks: string
  readonly #uid: number | undefined

  constructor(folder: string, uid: number | undefined) {
    this.folder = folder
    this.marks = join(folder, 'marks')
    this.#uid = uid
    for (const made of [folder, this.marks, join(folder, 'fakes')]) {
      mkdirSync(made, { recursive: true })
      chmodSync(made, 0o777)
    }
    for (const name of FAKE_PROGRAMS) {
      const fake = join(folder, 'fakes', name)
      writeFileSync(fake, `#!/bin/dash\n: > ${this.marks}/${name}\nexit 1\n`)
      chmodSync(fake, 0o755)
    }
  }

  start(command: readonly string[], junk: Junk): { process: ChildProcess; ended: Promise<JunkEnded> } {
    const user =
      this.#uid === undefined
        ? []
        : ['/usr/bin/setpriv', `--reuid=${this.#uid}`, `--regid=${this.#uid}`, '--clear-groups', '--']
    const path = `${this.folder}/fakes:${process.env['PATH'] ?? '/usr/bin:/bin'}`
    const spoken = JSON.stringify({ ...junk, folder: this.folder, path })
    const [program = '', ...args] = [...user, '/usr/bin/python3', '-c', LAUNCHER, spoken, ...command]
    const child = spawn(program, args, { cwd: '/', env: {}, stdio: ['ignore', 'pipe', 'pipe'] })
    const said = { stdout: '', stderr: '' }
    child.stdout.on('data', (chunk: Buffer) => (said.stdout += chunk.toString()))
    child.stderr.on('data', (chunk: Buffer) => (said.stderr += chunk.toString()))
    const ended = once(child, 'close').then(([status, signal]) => ({
      status: status as number | null,
      signal: signal as string | null,
      ...said,
    }))
    return { process: child, ended }
  }
}
