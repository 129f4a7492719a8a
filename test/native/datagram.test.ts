import { spawn, type ChildProcess } from 'node:child_process'
import { createInterface } from 'node:readline'
import { afterEach, describe, expect, test } from 'vitest'
import { sendDatagram } from '../../native/index.js'
import { codeOf, openDescriptorCount } from '../support/descriptors.js'
import { standStill } from '../support/stop.js'

const started: ChildProcess[] = []
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL')
})

/** A receiver at an abstract name, which prints each datagram in hexadecimal. */
async function receiver(name: string) {
  const script = `import socket,sys
s=socket.socket(socket.AF_UNIX,socket.SOCK_DGRAM)
s.bind('\\0'+sys.argv[1])
print('bound',flush=True)
while True: print(s.recv(65536).hex(),flush=True)`
  const child = spawn('/usr/bin/python3', ['-c', script, name], { stdio: ['ignore', 'pipe', 'inherit'] })
  started.push(child)
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  expect((await lines.next()).value).toBe('bound')
  return { child, next: async () => Buffer.from((await lines.next()).value as string, 'hex').toString() }
}

describe('a datagram to an abstract name', () => {
  test.each([`chio-test-${process.pid}`, 'n'.repeat(106)])(
    'arrives whole at exactly this name',
    async name => {
      const { next } = await receiver(name)
      sendDatagram(name, Buffer.from('READY=1\nSTATUS=slot free'))
      expect(await next()).toBe('READY=1\nSTATUS=slot free')
    },
  )

  test('is refused where nobody receives, and leaves no descriptor', async () => {
    const before = openDescriptorCount()
    for (let round = 0; round < 20; round += 1) {
      expect(await codeOf(() => sendDatagram('chio-test-nobody', Buffer.from('x')))).toBe('ECONNREFUSED')
    }
    expect(openDescriptorCount()).toBe(before)
  })

  test('never waits for a receiver that does not read', async () => {
    const { child } = await receiver(`chio-test-full-${process.pid}`)
    await standStill(child.pid ?? 0)
    const fill = (): void => {
      for (let sent = 0; sent < 10_000; sent += 1)
        sendDatagram(`chio-test-full-${process.pid}`, Buffer.alloc(1_000))
    }
    expect(await codeOf(fill)).toBe('EAGAIN')
  })

  test('is checked before it reaches the system', () => {
    expect(() => sendDatagram('', Buffer.from('x'))).toThrow('"abstractName" expected a name')
    expect(() => sendDatagram('n'.repeat(107), Buffer.from('x'))).toThrow('at most 106 bytes, got 107')
    expect(() => sendDatagram('n\0m', Buffer.from('x'))).toThrow('no NUL')
    expect(() => sendDatagram('n', Buffer.alloc(0))).toThrow('"payload.length" expected')
    expect(() => sendDatagram('n', 'text' as never)).toThrow('"payload" expected a Uint8Array')
  })
})
