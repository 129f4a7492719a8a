/**
 * fd 8 as tools in several languages meet it: they just read and write.
 */
import { afterAll, describe, expect, test } from 'vitest'
import { setTimeout as delay } from 'node:timers/promises'
import { shutdownWrite } from '../../native/index.js'
import {
  answerBody,
  buildTool,
  openFolder,
  requestBody,
  requestFrame,
  runCaged,
  runPython,
  runShell,
  serveOnce,
  type Caged,
  type Peer,
} from '../support/cage.js'

const folder = openFolder()
afterAll(() => folder.remove())

async function serveLate(peer: Peer): Promise<void> {
  expect(Buffer.from((await peer.receive())!)).toEqual(requestBody)
  await delay(2_000)
  await peer.answer()
}

const PYTHON = `
import os
os.write(8, open('/run/chio/request.frame','rb').read())
n = int.from_bytes(os.read(8, 4), 'big')
os.write(1, os.read(8, n))
`

const echo8 = (...args: string[]): Promise<Caged> =>
  runCaged({ tool: { path: buildTool('echo8', folder.path), argv: ['echo8', ...args] } }, serveAndClose)

/** The C tool reads up to the end: the peer closes its side, as the broker does. */
async function serveAndClose(peer: Peer): Promise<void> {
  await serveLate(peer)
  shutdownWrite(peer.fd)
}

const framed = Buffer.concat([Buffer.from([0, 0, 0, answerBody.length]), answerBody]).toString()

describe('descriptor 8', () => {
  test.concurrent('serves a shell when the answer takes two seconds', async () => {
    const { stdout } = await runShell('cat /run/chio/request.frame >&8; head -c 15 <&8', serveLate)
    expect(stdout).toBe(framed)
  })

  test.concurrent('serves python when the answer takes two seconds', async () => {
    const { stdout, stderr } = await runPython(PYTHON, serveLate)
    expect({ stdout, stderr }).toEqual({ stdout: answerBody.toString(), stderr: '' })
  })

  test.concurrent('serves a C program when the answer takes two seconds', async () => {
    const { stdout, finished } = await echo8()
    expect(stdout).toBe(framed)
    expect(finished).toMatchObject({ exitCode: 0, signal: null })
  })

  test.concurrent('still brings the answer to a tool that closes its writing half', async () => {
    const { stdout, finished } = await echo8('half-close')
    expect(stdout).toBe(framed)
    expect(finished.exitCode).toBe(0)
  })

  test.concurrent('serves node as a socket of its own', async () => {
    const script = `
      const net = require('node:net'), fs = require('node:fs')
      const s = new net.Socket({ fd: 8 })
      s.end(fs.readFileSync('/run/chio/request.frame'))
      s.on('data', d => process.stdout.write(d.subarray(4)))`
    const tool = { path: '/usr/bin/node', argv: ['/usr/bin/node', '-e', script] }
    const { stdout, stderr } = await runCaged({ tool, profile: 'node' }, serveOnce)
    expect({ stdout, stderr }).toEqual({ stdout: answerBody.toString(), stderr: '' })
  })
})

describe('the tool', () => {
  test('holds 0, 1, 2 and 8, and nothing else', async () => {
    const { stdout } = await runPython(
      `import os\nfor f in sorted(os.listdir('/proc/self/fd'), key=int):\n  try: print(f, os.readlink('/proc/self/fd/'+f).split(':')[0])\n  except OSError: pass`,
    )
    expect(stdout).toBe('0 /dev/null\n1 pipe\n2 pipe\n8 socket\n')
  })

  test('finds its own copy of the exact frame, and the body alone', async () => {
    const { stdout } = await runPython(
      `import os,sys\nd='/run/chio/'\nsys.stdout.write(open(d+'request.frame','rb').read().hex()+' '+open(d+'request.json').read())`,
    )
    expect(stdout).toBe(`${Buffer.from(requestFrame).toString('hex')} ${requestBody.toString()}`)
  })

  test('can read the request files and no one else can', async () => {
    const { stdout } = await runPython(
      `import os\nd='/run/chio'\nprint(oct(os.stat(d).st_mode & 0o777), [(f, oct(os.stat(d+'/'+f).st_mode & 0o777)) for f in sorted(os.listdir(d))])`,
    )
    expect(stdout).toBe("0o700 [('request.frame', '0o400'), ('request.json', '0o400')]\n")
  })

  test('has the environment of its policy and nothing of the launcher', async () => {
    process.env['CHIO_TEST_CANARY_TOKEN'] = 'canary-4711'
    const body = `
import os
found = [os.environ.get('CHIO_TEST_CANARY_TOKEN', '')]
for pid in filter(str.isdigit, os.listdir('/proc')):
  for name in ('environ', 'cmdline', 'mountinfo'):
    try: found.append(open('/proc/%s/%s' % (pid, name), 'rb').read().decode('latin1'))
    except OSError as e: found.append(str(e.errno))
print('canary-%d' % (4700 + 11) in ' '.join(found), sorted(os.environ), sorted(p for p in os.listdir('/proc') if p.isdigit()))`
    const { stdout } = await runPython(body)
    delete process.env['CHIO_TEST_CANARY_TOKEN']
    expect(stdout).toBe("False ['HOME', 'LANG', 'PATH', 'TMPDIR'] ['1', '2']\n")
  })

  test('is bounded in processes, files, memory and descriptors, and leaves no core', async () => {
    const { stdout } = await runPython(
      `import resource as r\nprint([r.getrlimit(x) for x in (r.RLIMIT_NOFILE, r.RLIMIT_NPROC, r.RLIMIT_CORE, r.RLIMIT_CPU, r.RLIMIT_FSIZE)])`,
    )
    expect(stdout).toBe('[(64, 64), (64, 64), (1, 1), (60, 60), (67108864, 67108864)]\n')
  })

  test('cannot fill more than its scratch size', async () => {
    const tool = { path: '/usr/bin/dd', argv: ['dd', 'if=/dev/zero', 'of=/tmp/full', 'bs=65536'] }
    const { stderr, finished } = await runCaged({ tool, scratchBytes: 1_048_576 })
    expect(finished.exitCode).toBe(1)
    expect(stderr).toContain('No space left on device')
    expect(stderr).toContain('1048576 bytes')
  })
})
