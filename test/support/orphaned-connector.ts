// Owns a connector that dies while its stream lives on: a process that connects and writes, and a child of it that
// keeps the descriptor. The peer is the dead one, whoever holds the stream.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { decode } from '../../protocol/codec.js'
import { IpcResponse } from '../../protocol/envelope.js'
import type { Seen } from './raw-broker.js'

const PROGRAM = `
import os, socket, struct, sys
path, first, then = sys.argv[1], bytes.fromhex(sys.argv[2]), bytes.fromhex(sys.argv[3])
s = socket.socket(socket.AF_UNIX)
s.connect(path)
s.sendall(first)
def frame():
    head = b''
    while len(head) < 4:
        piece = s.recv(4 - len(head))
        if not piece: return b''
        head += piece
    body = b''
    while len(body) < struct.unpack('>I', head)[0]:
        piece = s.recv(65536)
        if not piece: return b''
        body += piece
    return body
if then:
    frame()
for line in sys.stdin:
    word = line.strip()
    if word == 'write':
        s.sendall(then)
    elif word == 'leave':
        break
if os.fork():
    os._exit(0)
sys.stdin.readline()
try:
    print(frame().hex(), flush=True)
except OSError:
    print('', flush=True)
`

export interface OrphanedConnector {
  /** Writes the second frame, after an answer to the first was read. */
  write(): void
  /** Ends the connecting process; resolves when it is dead. */
  leave(): Promise<void>
  /** Lets the survivor read one answer. */
  seen(): Promise<Seen>
}

/** @param then the second frame; with one, an answer to the first is read before anything else. */
export function orphanedConnector(
  path: string,
  first: Uint8Array,
  then: Uint8Array = new Uint8Array(0),
): OrphanedConnector {
  const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')
  const child = spawn('/usr/bin/python3', ['-c', PROGRAM, path, hex(first), hex(then)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const output = collect(child.stdout)
  const exited = once(child, 'exit')
  return {
    write: () => void child.stdin.write('write\n'),
    async leave() {
      child.stdin.write('leave\n')
      await exited
    },
    async seen() {
      child.stdin.write('go\n')
      const text = (await output).trim()
      return text === '' ? 'closed' : decode(IpcResponse, Buffer.from(text, 'hex'), 'answer')
    },
  }
}

async function collect(stream: NodeJS.ReadableStream): Promise<string> {
  let text = ''
  for await (const chunk of stream) text += String(chunk)
  return text
}
