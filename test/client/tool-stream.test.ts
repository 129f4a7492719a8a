// A tool adopts descriptor 8 only when it is a connected Unix stream; of everything else it is told what it is, and
// nothing else is opened in its place.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { adoptPreparedStream, TOOL_DESCRIPTOR } from '../../client/tool-stream.js'
import { closeDescriptor, readFrame, socketPair, writeFully } from '../../native/index.js'
import { packageRoot } from '../../native/paths.js'
import { encode } from '../../protocol/codec.js'
import { IpcResponse } from '../../protocol/envelope.js'
import { encodeFrame } from '../../protocol/frame.js'
import { codeOf, deadlineIn, runWith } from '../support/descriptors.js'

const FRAME = encodeFrame(Buffer.from('{}'))
const MODULE = pathToFileURL(join(packageRoot(), 'dist', 'client', 'index.js')).href

/** A tool in Node: tries to adopt each descriptor that it was given and prints what it was told. */
const TOOL = `
import { adoptPreparedStream } from ${JSON.stringify(MODULE)}
for (const descriptor of process.argv.slice(1).map(Number)) {
  try { adoptPreparedStream(new Uint8Array(6), descriptor); console.log(JSON.stringify({ code: null })) }
  catch (error) { console.log(JSON.stringify({ code: error.code, sentence: error.message })) }
}
`

/** Makes one descriptor of each kind in a process of its own and runs the tool with all of them. */
const MAKER = `
import os, socket, subprocess, sys
folder, node, tool = sys.argv[1:4]
kept = []
os.dup2(0, 8)
def unix(kind): return socket.socket(socket.AF_UNIX, kind)
def listening(family, at):
    s = socket.socket(family, socket.SOCK_STREAM); s.bind(at); s.listen(1); return s
def tcp():
    server = listening(socket.AF_INET, ('127.0.0.1', 0)); s = socket.socket(); s.connect(server.getsockname())
    kept.append(server); return s
kinds = {
    'a pipe': lambda: os.fdopen(os.pipe()[0]),
    'a file': lambda: open(folder + '/file', 'w'),
    '/dev/null': lambda: open('/dev/null', 'r+b', 0),
    'a TCP connection': tcp,
    'a listening TCP socket': lambda: listening(socket.AF_INET, ('127.0.0.1', 0)),
    'a listening Unix socket': lambda: listening(socket.AF_UNIX, folder + '/sock'),
    'a Unix datagram socket': lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0],
    'a Unix packet socket': lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)[0],
    'an unconnected Unix stream': lambda: unix(socket.SOCK_STREAM),
    'a connected Unix stream': lambda: socket.socketpair()[0],
}
made = [make() for make in kinds.values()]
numbers = [one.fileno() for one in made]
os.dup2(numbers[-1], 8)
numbers[-1] = 8
for number in numbers: os.set_inheritable(number, True)
command = [node, '--input-type=module', '-e', tool, *map(str, numbers)]
said = subprocess.run(command, pass_fds=numbers, stdout=subprocess.PIPE).stdout.decode()
for name, number, line in zip(kinds, numbers, said.splitlines()): print(name, number, line, sep='\\t')
`

let folder: string
let answers: ReadonlyMap<string, { descriptor: number; code: string | null; sentence?: string }>
let calls: string

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'chio-tool-'))
  const trace = ['-f', '-qq', '-e', 'trace=connect', '-o', join(folder, 'trace')]
  const maker = ['/usr/bin/python3', '-c', MAKER, folder, process.execPath, TOOL]
  const { stdout, stderr, status } = runWith('strace', [...trace, ...maker])
  if (status !== 0) throw new Error(`the tools did not run: ${stderr}`)
  const lines = stdout.split('\n').slice(0, -1)
  answers = new Map(
    lines.map(line => {
      const [kind = '', descriptor, answer = ''] = line.split('\t')
      return [kind, { descriptor: Number(descriptor), ...(JSON.parse(answer) as { code: string | null }) }]
    }),
  )
  calls = readFileSync(join(folder, 'trace'), 'utf8')
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('a descriptor of a tool', () => {
  test.each([
    ['a pipe', 'something that is no socket'],
    ['a file', 'something that is no socket'],
    ['/dev/null', 'something that is no socket'],
    ['a TCP connection', 'a socket of another family (inet)'],
    ['a listening TCP socket', 'a listening socket'],
    ['a listening Unix socket', 'a listening socket'],
    ['a Unix datagram socket', 'a Unix dgram socket'],
    ['a Unix packet socket', 'a Unix seqpacket socket'],
    ['an unconnected Unix stream', 'an unconnected Unix stream'],
  ])('that is %s is refused as %s', (kind, named) => {
    expect(answers.get(kind)).toMatchObject({ code: 'not_a_prepared_stream' })
    expect(answers.get(kind)?.sentence).toBe(
      `descriptor ${answers.get(kind)?.descriptor} refused: expected a connected Unix stream, got ${named}`,
    )
  })

  test('that is a connected Unix stream is adopted', () => {
    expect(answers.get('a connected Unix stream')).toEqual({
      descriptor: TOOL_DESCRIPTOR,
      code: null,
    })
  })

  test('that is nothing at all is refused as closed', async () => {
    const closed = socketPair('stream')
    for (const descriptor of closed) closeDescriptor(descriptor)
    expect(await codeOf(() => adoptPreparedStream(FRAME, closed[0]))).toBe('not_a_prepared_stream')
    expect(() => adoptPreparedStream(FRAME, closed[0])).toThrow('got nothing (it is closed)')
  })

  test('is never replaced by a connection of the tool, whatever it was', () => {
    // The one connection of the whole trace is the maker's own, to its TCP listener.
    expect(calls.match(/connect\(/g)).toHaveLength(1)
    expect(calls).toContain('AF_INET')
  })

  test('carries the exact frame once and brings back the response', async () => {
    const [descriptor, peer] = socketPair('stream')
    const answer = encode(IpcResponse, {
      accepted: false,
      errorCode: 'attempt_unknown',
      operation: 'execute',
      response: new Uint8Array(0),
    })
    const submitted = adoptPreparedStream(FRAME, descriptor).submit(deadlineIn(5_000))
    const got = await readFrame(peer, { maximumFrameBytes: 100, deadlineBootNs: deadlineIn(5_000) })
    await writeFully(peer, encodeFrame(answer), deadlineIn(5_000))
    expect(Buffer.from(got ?? []).toString()).toBe('{}')
    expect((await submitted).response.errorCode).toBe('attempt_unknown')
    closeDescriptor(peer)
  })
})
