// chio-kerneld as a process: its command line, its keys, its exit codes.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { kernelConfig, clientOf, makeKernelFolder, seed } from '../support/kernel.js'
import { systemClock } from '../../native/clock.js'
import { packageRoot } from '../../native/paths.js'
import { signingKey } from '../../protocol/keys.js'
import { SidecarClient } from '../../sidecar/client.js'
import { TestExecutor } from '../support/caller-executor.js'
import { CONTROL_TOKEN } from '../support/sidecar.js'
import { callUnder, contextAt, tokenOf } from '../support/tool-call.js'

/** The one tool that exists here. */
const APPEND = {
  serverId: 'notes',
  toolName: 'append',
  effectClass: 'side_effecting',
  requiredApprovals: 0,
  guards: null,
  outputSchema: null,
} as const
const NAMES = ['kernel', 'authority', 'issuer', 'storage'] as const
const people = { administrator: signingKey(seed()), broker: signingKey(seed()), caller: signingKey(seed()) }

let folder: string
let configPath: string
const started: ReturnType<typeof spawn>[] = []
beforeEach(() => {
  folder = makeKernelFolder()
  configPath = join(folder, 'config.json')
  writeFileSync(configPath, JSON.stringify(kernelConfig(folder, people)), { mode: 0o600 })
  for (const name of NAMES) writeFileSync(keyPath(name), seed(), { mode: 0o600 })
})
afterEach(async () => {
  for (const child of started.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  rmSync(folder, { recursive: true, force: true })
})

const keyPath = (name: string): string => join(folder, `${name}.key`)
const keyArguments = (...names: readonly string[]): string[] =>
  names.flatMap(name => [`--${name}-key-file`, keyPath(name)])

interface Line {
  readonly event: string
  readonly [field: string]: unknown
}

/** Starts the daemon and hands its log lines out as they come. */
function run(args: readonly string[], environment: Record<string, string> = {}) {
  const bin = join(packageRoot(), 'dist', 'bin', 'chio-kerneld.js')
  const child = spawn(process.execPath, [bin, ...args], {
    env: { PATH: '/usr/bin:/bin', ...environment },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  started.push(child)
  const lines: Line[] = []
  const reader = createInterface({ input: child.stderr })
  reader.on('line', line => lines.push(JSON.parse(line) as Line))
  const closed = once(child, 'close')
  return {
    child,
    lines,
    async said(event: string): Promise<Line> {
      for (;;) {
        const found = lines.find(line => line.event === event)
        if (found !== undefined) return found
        await Promise.race([once(reader, 'line'), closed])
        if (child.exitCode !== null) break
      }
      throw new Error(`ended with ${String(child.exitCode)}: ${JSON.stringify(lines)}`)
    },
    async exitCode(): Promise<number | null> {
      await closed
      return child.exitCode
    },
  }
}

const provision = () => run(['--config', configPath, '--provision']).exitCode()
const serve = () => run(['--config', configPath, ...keyArguments(...NAMES)])

describe('chio-kerneld', () => {
  test('provisions once, serves with its keys, ends at SIGTERM and leaves no socket', async () => {
    expect(await provision()).toBe(0)
    expect(await provision()).toBe(1)
    const daemon = serve()
    const ready = await daemon.said('ready')
    const keys = NAMES.slice(0, 3).map(name => [name, signingKey(readFileSync(keyPath(name))).publicKey])
    expect(ready).toMatchObject({ ownerEpoch: 1, ...Object.fromEntries(keys) })
    const config = kernelConfig(folder, people)
    const client = clientOf(config)
    expect(await client.call('status', {})).toMatchObject({ brokerReachable: false, ownerEpoch: 1 })
    client.close()
    daemon.child.kill('SIGTERM')
    expect(await daemon.exitCode()).toBe(0)
    expect([config.hostSocketPath, config.authoritySocketPath].filter(existsSync)).toEqual([])
  })

  test('admits the calls of the tools that its configuration names, and no others', async () => {
    const config = kernelConfig(folder, { ...people, configuredCalls: { issuers: [], tools: [APPEND] } })
    writeFileSync(configPath, JSON.stringify(config), { mode: 0o600 })
    await provision()
    await serve().said('ready')
    const client = clientOf(config)
    const issuer = signingKey(readFileSync(keyPath('issuer')))
    const token = tokenOf({ caller: people.caller, keys: { issuer } })
    const request = callUnder(token)
    const { executionNonce } = await client.call('call_preflight', { context: contextAt(1), request })
    const reserve = { context: contextAt(2), executionNonce, request }
    expect(await client.call('call_reserve', reserve)).toMatchObject({
      state: 'ready_to_dispatch',
      verdict: 'allow',
    })
    const other = callUnder(tokenOf({ caller: people.caller, keys: { issuer } }, { tool_name: 'drop' }), {
      tool: 'drop',
    })
    expect(await client.call('call_preflight', { context: contextAt(1), request: other })).toMatchObject({
      check: 'target',
      verdict: 'deny',
    })
    client.close()
  })

  test('is refused beside another that serves the same store, by name, with exit code 73', async () => {
    await provision()
    const first = serve()
    await first.said('ready')
    const second = serve()
    expect(await second.exitCode()).toBe(73)
    expect(second.lines.at(-1)?.['sentence']).toContain(`pid ${first.child.pid}`)
  })

  test('takes over after a kill, past the sockets that were left behind', async () => {
    await provision()
    const first = serve()
    await first.said('ready')
    first.child.kill('SIGKILL')
    await first.exitCode()
    expect(await serve().said('ready')).toMatchObject({ ownerEpoch: 2 })
  })

  test('never makes a store by serving', async () => {
    const daemon = serve()
    expect(await daemon.exitCode()).toBe(1)
    expect(daemon.lines.at(-1)).toMatchObject({ code: 'store_missing' })
  })

  test('lists every key that is missing or given twice in one refusal', async () => {
    const args = ['--config', configPath, ...keyArguments('kernel', 'storage'), '--storage-key-fd', '9']
    const daemon = run(args)
    expect(await daemon.exitCode()).toBe(1)
    const sentence = String(daemon.lines.at(-1)?.['sentence'])
    for (const name of ['authority', 'issuer', 'storage']) expect(sentence).toContain(`--${name}-key-`)
    expect(sentence).not.toContain('--kernel-key-')
  })

  test('refuses a key that others may read, a hostile environment and an unknown option', async () => {
    await provision()
    chmodSync(keyPath('issuer'), 0o640)
    const readable = serve()
    expect(await readable.exitCode()).toBe(1)
    expect(readable.lines.at(-1)).toMatchObject({ code: 'custody' })
    const hostile = run(['--config', configPath], { SSLKEYLOGFILE: '/nowhere' })
    expect(await hostile.exitCode()).toBe(1)
    expect(hostile.lines.at(-1)?.['sentence']).toContain('SSLKEYLOGFILE')
    expect(await run(['--config', configPath, '--surplus']).exitCode()).toBe(2)
  })
})

describe('the caller routes of chio-kerneld', () => {
  const executor = new TestExecutor()
  const tokenPath = () => join(folder, 'control.token')
  const listen = () => ({ path: join(folder, 'routes', 'sock') })

  /** The configuration with routes at a socket of their own, and a token for them. */
  async function configure(changes: Readonly<Record<string, unknown>> = {}): Promise<void> {
    mkdirSync(join(folder, 'routes'), { mode: 0o700 })
    writeFileSync(tokenPath(), `${CONTROL_TOKEN}\n`, { mode: 0o600 })
    const { executor_id: executorId, key_epoch: keyEpoch, public_key: publicKey } = executor.pin
    const callerDelivery = {
      controlTokenFile: tokenPath(),
      executor: { executorId, keyEpoch, publicKey },
      listen: listen(),
    }
    const configuredCalls = { issuers: [], tools: [APPEND] }
    const document = { ...kernelConfig(folder, { ...people, configuredCalls }), callerDelivery, ...changes }
    writeFileSync(configPath, JSON.stringify(document), { mode: 0o600 })
    expect(await provision()).toBe(0)
  }

  test('take one call from its reservation to its report, and end with the daemon', async () => {
    await configure()
    const daemon = serve()
    await daemon.said('sidecar_ready')
    const client = new SidecarClient(listen(), { clock: systemClock })
    const keys = { issuer: signingKey(readFileSync(keyPath('issuer'))) }
    const call = callUnder(tokenOf({ caller: people.caller, keys }))
    const { capability_token: capability, id: requestId, params: parameters } = call
    const asked = { capability, parameters, requestId, toolName: 'append', toolServer: 'notes' }
    const reserved = await client.evaluateToolCall(asked)
    if (reserved.status !== 'reserved') throw new Error('expected a reservation')
    const started = await client.startMediatedExecution({
      arguments: parameters,
      controlToken: CONTROL_TOKEN,
      executionNonce: reserved.execution_nonce,
    })
    if (started.status !== 'dispatch_committed') throw new Error('expected a commitment')
    const { authorization } = started
    const report = executor.report(authorization)
    expect(
      await client.reportMediatedExecution({ authorization, controlToken: CONTROL_TOKEN, report }),
    ).toMatchObject({ output: { written: true }, status: 'reconciled' })
    daemon.child.kill('SIGTERM')
    expect(await daemon.exitCode()).toBe(0)
    expect(existsSync(listen().path)).toBe(false)
    expect(JSON.stringify(daemon.lines)).not.toMatch(/the-control-token|needle/)
  })

  test('refuse to start beside a kernel that forgets, which then serves nothing', async () => {
    await configure({ durableMode: 'off', unsafeDevelopment: true })
    const daemon = serve()
    expect(await daemon.exitCode()).toBe(1)
    expect(daemon.lines.at(-1)?.['sentence']).toMatch(/durable admission/)
    expect(existsSync(kernelConfig(folder, people).hostSocketPath)).toBe(false)
  })
})
