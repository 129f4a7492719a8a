import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { spawn, spawnSync } from 'node:child_process'
import type { StdioOptions } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import * as native from '../../native/index.js'
import { deadlineIn, openDescriptorCount } from '../support/descriptors.js'

const program = native.nativePath('chio-exec')
const text = (value: string): Uint8Array => new TextEncoder().encode(value)

function frame(body: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(4 + body.length)
  new DataView(bytes.buffer).setUint32(0, body.length)
  bytes.set(body, 4)
  return bytes
}

let folder: string
let request: string
let ours: number
let tools: number

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'chio-exec-'))
  request = join(folder, 'request.frame')
  writeFileSync(request, frame(text('{"exact":"request"}')))
  ;[ours, tools] = native.socketPair('stream')
})

afterEach(() => {
  rmSync(folder, { recursive: true })
  for (const fd of [ours, tools]) if (fd >= 0) native.closeDescriptor(fd)
})

function stdio(eight: number): Exclude<StdioOptions, string> {
  return ['ignore', 'pipe', 'pipe', 'ignore', 'ignore', 'ignore', 'ignore', 'ignore', eight]
}

/** Starts the tool with the stream at 8 and closes our copy of the tool's end. */
function start(...options: string[]) {
  const child = spawn(program, [...options, request], { stdio: stdio(tools) })
  native.closeDescriptor(tools)
  tools = -1
  const output: Buffer[] = []
  const words: Buffer[] = []
  child.stdout!.on('data', (chunk: Buffer) => output.push(chunk))
  child.stderr!.on('data', (chunk: Buffer) => words.push(chunk))
  return once(child, 'close').then(([status]) => ({
    status: status as number,
    stdout: Buffer.concat(output),
    stderr: Buffer.concat(words).toString(),
  }))
}

const readRequest = () =>
  native.readFrame(ours, { maximumFrameBytes: 9_000_000, deadlineBootNs: deadlineIn(5000) })
const answer = (bytes: Uint8Array) => native.writeFully(ours, bytes, deadlineIn(5000))

function hangUp(): void {
  native.closeDescriptor(ours)
  ours = -1
}

describe('chio-exec', () => {
  test('writes the exact frame once and prints the body of one response', async () => {
    const before = openDescriptorCount()
    const ended = start()
    expect(await readRequest()).toEqual(text('{"exact":"request"}'))
    await answer(frame(text('{"result":"körper"}')))
    expect(await ended).toEqual({ status: 0, stdout: Buffer.from('{"result":"körper"}'), stderr: '' })
    expect(
      await native.readFrame(ours, { maximumFrameBytes: 1, deadlineBootNs: deadlineIn(1000) }),
    ).toBeNull()
    expect(openDescriptorCount()).toBeLessThanOrEqual(before)
  })

  test('carries the largest request through a small socket, and a response that comes in pieces', async () => {
    const body = new Uint8Array(8 * 1024 * 1024).fill(0x61)
    writeFileSync(request, frame(body))
    const ended = start()
    const got = await readRequest()
    expect(got?.length).toBe(body.length)
    const response = frame(new Uint8Array(2 * 1024 * 1024).fill(0x62))
    await answer(response.subarray(0, 2))
    await new Promise(resolve => setTimeout(resolve, 20))
    await answer(response.subarray(2))
    const { status, stdout } = await ended
    expect(status).toBe(0)
    expect(stdout.length).toBe(2 * 1024 * 1024)
  })

  test('takes a response at the bound and refuses one over, printing nothing of it', async () => {
    for (const [bytes, status] of [
      [100, 0],
      [101, 77],
    ] as const) {
      const ended = start('--max-response-bytes', '100')
      await readRequest()
      await answer(frame(new Uint8Array(bytes).fill(0x63)))
      const run = await ended
      expect(run.status).toBe(status)
      expect(run.stdout.length).toBe(status === 0 ? bytes : 0)
      if (status !== 0)
        expect(run.stderr).toBe("chio-exec: response is longer than the bound: read the broker's record\n")
      hangUp()
      ;[ours, tools] = native.socketPair('stream')
    }
  })

  test('says 75 and "outcome undetermined" when the stream ends without a response', async () => {
    const ended = start()
    await readRequest()
    hangUp()
    expect(await ended).toEqual({
      status: 75,
      stdout: Buffer.alloc(0),
      stderr: "chio-exec: no response: outcome undetermined, read the broker's record\n",
    })
  })

  test('says 75 when the peer had closed before it could write', async () => {
    hangUp()
    expect((await start()).status).toBe(75)
  })

  test('says 76 for a response that ends inside, and prints none of it', async () => {
    for (const part of [1, 3, 4, 10]) {
      const ended = start()
      await readRequest()
      await answer(frame(text('{"result":"torn"}')).subarray(0, part))
      hangUp()
      const run = await ended
      expect(run).toMatchObject({ status: 76, stdout: Buffer.alloc(0) })
      expect(run.stderr).toContain('ended early: outcome undetermined')
      ;[ours, tools] = native.socketPair('stream')
    }
  })

  test('still reads an answer that came before the peer stopped reading', async () => {
    writeFileSync(request, frame(new Uint8Array(4 * 1024 * 1024)))
    await answer(frame(text('refused')))
    native.shutdownWrite(ours)
    const ended = start()
    await native.readExact(ours, 1000, deadlineIn(2000))
    hangUp()
    expect(await ended).toMatchObject({ status: 0, stdout: Buffer.from('refused') })
  })

  test('survives stops and continues in the middle of both directions', async () => {
    writeFileSync(request, frame(new Uint8Array(1024 * 1024)))
    const child = spawn(program, [request], { stdio: stdio(tools) })
    const closed = once(child, 'close')
    let length = 0
    child.stdout!.on('data', (chunk: Buffer) => (length += chunk.length))
    const signals = setInterval(() => child.kill('SIGSTOP') && setTimeout(() => child.kill('SIGCONT'), 3), 8)
    await readRequest()
    await answer(frame(new Uint8Array(1024 * 1024)))
    const [status] = (await closed) as [number]
    clearInterval(signals)
    expect([status, length]).toEqual([0, 1024 * 1024])
  })
})

describe('descriptor 8 that is not the prepared stream', () => {
  const refusal = (eight: number, input: StdioOptions = stdio(eight)) => {
    const run = spawnSync(program, [request], { stdio: input, timeout: 5000 })
    return [run.status, run.stderr.toString().trim()]
  }
  const sentence = (what: string) => [69, `chio-exec: descriptor 8 is ${what}`]

  test('is named for what it is, and nothing is written to it', async () => {
    expect(refusal(tools, ['ignore', 'pipe', 'pipe'])).toEqual(
      sentence('closed, expected the prepared stream'),
    )
    const device = openSync('/dev/null', 'r+')
    expect(refusal(device)).toEqual(sentence('a character device, expected the prepared stream'))
    closeSync(device)
    const file = openSync(request, 'r+')
    expect(refusal(file)).toEqual(sentence('a regular file, expected the prepared stream'))
    closeSync(file)
    const directory = native.openDirectory(folder)
    expect(refusal(directory)).toEqual(sentence('a directory, expected the prepared stream'))
    native.closeDescriptor(directory)
    const [reading, writing] = native.pipe()
    expect(refusal(writing)).toEqual(sentence('a pipe, expected the prepared stream'))
    native.closeDescriptor(writing)
    expect(await native.readToEnd(reading, 10, deadlineIn(1000))).toHaveLength(0)
    native.closeDescriptor(reading)
    const [packet, other] = native.socketPair('seqpacket')
    expect(refusal(packet)).toEqual(sentence('a packet socket, expected a Unix stream'))
    native.closeDescriptor(packet)
    expect(await native.receiveMessage(other, deadlineIn(1000), 10)).toBeNull()
    native.closeDescriptor(other)
  })

  test('is named when it is a listener or TCP', async () => {
    const server = createServer().listen(join(folder, 'sock'))
    await once(server, 'listening')
    const fd = (server as unknown as { _handle: { fd: number } })._handle.fd
    expect(refusal(fd)).toEqual(sentence('a listening socket, expected a connected Unix stream'))
    server.close()
    const tcp = createServer().listen(0, '127.0.0.1')
    await once(tcp, 'listening')
    expect((tcp.address() as AddressInfo).port).toBeGreaterThan(0)
    const internet = (tcp as unknown as { _handle: { fd: number } })._handle.fd
    expect(refusal(internet)).toEqual(sentence('an internet socket, expected a Unix stream'))
    tcp.close()
  })

  test('is named when it is a datagram or an unconnected socket', () => {
    for (const [kind, words] of [
      ['SOCK_DGRAM', 'a datagram socket, expected a Unix stream'],
      ['SOCK_STREAM', 'an unconnected socket, expected a connected Unix stream'],
    ] as const) {
      const script = `import os, socket, sys\ns = socket.socket(socket.AF_UNIX, socket.${kind})\nos.dup2(s.fileno(), 8)\nos.execv(sys.argv[1], sys.argv[1:])`
      const run = spawnSync('/usr/bin/python3', ['-c', script, program, request])
      expect([run.status, run.stderr.toString().trim()]).toEqual(sentence(words))
    }
  })
})

describe('a request file that is no frame', () => {
  test('is 66, and nothing was sent', async () => {
    const wrong: [string, Uint8Array | undefined][] = [
      ['cannot be opened', undefined],
      ['expected a file of 5 bytes', new Uint8Array(4)],
      ['expected a file of 5 bytes', new Uint8Array(4 + 8 * 1024 * 1024 + 1)],
      ['expected its own length', new Uint8Array([0, 0, 0, 9, 1])],
    ]
    for (const [words, bytes] of wrong) {
      rmSync(request, { force: true })
      if (bytes !== undefined) writeFileSync(request, bytes)
      const run = await start()
      expect(run.status).toBe(66)
      expect(run.stderr).toContain(words)
      expect(run.stderr).toContain('nothing was sent')
      expect(await readRequest()).toBeNull()
      hangUp()
      ;[ours, tools] = native.socketPair('stream')
    }
  })

  test('and wrong arguments are 2', () => {
    for (const options of [
      ['--max-response-bytes', '0'],
      ['--max-response-bytes', '33554433'],
      ['--max-response-bytes', '-5'],
      ['--max-response-bytes', '5x'],
      ['--max-response-bytes'],
      ['a', 'b'],
      ['--help'],
    ]) {
      expect(spawnSync(program, options, { stdio: stdio(tools) }).status).toBe(2)
    }
  })
})

test('an output that does not take the response is 74', async () => {
  const [reading, writing] = native.pipe()
  native.closeDescriptor(reading)
  const full = openSync('/dev/full', 'w')
  const child = spawn(program, [request], {
    stdio: ['ignore', full, 'ignore', ...stdio(tools).slice(3)],
  })
  const closed = once(child, 'close')
  await readRequest()
  await answer(frame(text('answer')))
  expect((await closed)[0]).toBe(74)
  closeSync(full)
  native.closeDescriptor(writing)
})
