// Owns clients that may connect and misuse it, each a process of its own: silent and half-said connections, answers
// that nobody reads, large frames one after the other, questions without end. Ends only what it started.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

const PROGRAM = `
import socket, sys, time
kind, path, file = sys.argv[1:4]
frame = open(file, 'rb').read()
held = []
def connected():
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(6)
    s.connect(path)
    return s
def hold(s, most):
    held.append(s)
    if len(held) > most:
        held.pop(0).close()
def one():
    s = connected()
    if kind == 'silent':
        hold(s, 100)
    elif kind == 'half':
        s.sendall(frame[:len(frame) // 2])
        hold(s, 100)
    elif kind == 'stalled':
        s.sendall(frame)
        hold(s, 60)
    else:
        s.sendall(frame)
        while s.recv(65536):
            pass
        s.close()
done = 0
while True:
    try:
        one()
        done += 1
        if done == 1:
            print('up', flush=True)
    except OSError:
        pass
    time.sleep(0.002)
`

export type FloodKind = 'asking' | 'half' | 'large' | 'silent' | 'stalled'

export class Flooders {
  readonly #folder: string
  readonly #path: string
  readonly #children: ChildProcess[] = []

  constructor(socketPath: string, folder: string) {
    this.#path = socketPath
    this.#folder = folder
  }

  /** Starts one and resolves when it is at it. @param frame what it says, whole or in part. */
  async start(kind: FloodKind, frame: Uint8Array): Promise<void> {
    const file = join(this.#folder, `flood-${this.#children.length}`)
    writeFileSync(file, frame)
    // Nice: what is looked at is the order in which the broker serves, not who gets one of two processors.
    const child = spawn('nice', ['-n', '10', '/usr/bin/python3', '-c', PROGRAM, kind, this.#path, file], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    this.#children.push(child)
    await once(child.stdout, 'data')
  }

  /** Ends them; resolves when they are dead. */
  async stop(): Promise<void> {
    const children = this.#children.splice(0)
    const exits = children.map(child => once(child, 'exit'))
    for (const child of children) child.kill('SIGKILL')
    await Promise.all(exits)
  }
}
