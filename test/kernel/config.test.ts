// The kernel's configuration: every member is asked for, and a refusal names it without repeating its value.
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { callPolicyOf } from '../../kernel/calls/call-policy.js'
import { parseKernelConfig, readKernelConfig } from '../../kernel/config.js'
import { signingKey } from '../../protocol/keys.js'
import { overflowUid } from '../../system/peer.js'
import { kernelConfig, makeKernelKeys, seed } from '../support/kernel.js'

const people = { administrator: signingKey(seed()), broker: signingKey(seed()), caller: signingKey(seed()) }
const document = (): Record<string, unknown> =>
  JSON.parse(JSON.stringify(kernelConfig('/state', people))) as Record<string, unknown>
const parse = (value: unknown) => parseKernelConfig(Buffer.from(JSON.stringify(value)))

const TOOL = {
  serverId: 'notes',
  toolName: 'append',
  effectClass: 'side_effecting',
  requiredApprovals: 0,
  guards: { maximumArgumentBytes: 4_096, secretScan: true, argumentSchema: { type: 'object' } },
  outputSchema: { type: 'object' },
}
const PAID = { ...TOOL, effectClass: 'monetary', guards: null, outputSchema: null, toolName: 'pay' }
const calls = (...tools: readonly object[]) => ({ toolCalls: { issuers: [], tools } })
const delivery = (changes: object = {}) => ({
  executor: { executorId: 'notes', keyEpoch: 1, publicKey: people.caller.publicKey, ...changes },
  controlTokenFile: null,
  listen: null,
})

describe('the configuration of a kernel', () => {
  test.each(['', '\ufeff{}', '{"schema":1,"schema":1}', '['.repeat(100), '{}\0'])(
    'that is no strict JSON is the fault of a configuration: %j',
    text => {
      expect(() => parseKernelConfig(Buffer.from(text))).toThrow(
        expect.objectContaining({ code: 'invalid_configuration' }) as never,
      )
    },
  )

  test('that is not there is refused by its path', () => {
    expect(() => readKernelConfig('/nonexistent/config.json')).toThrow(
      expect.objectContaining({
        code: 'invalid_configuration',
        message: 'configuration file /nonexistent/config.json refused: expected a readable file, got ENOENT',
      }) as never,
    )
  })

  test('is read as it was written', () => {
    expect(parse(document())).toEqual(kernelConfig('/state', people))
  })

  test.each(Object.keys(document()))('is refused without %s', member => {
    const { [member]: _left, ...rest } = document()
    expect(() => parse(rest)).toThrow(new RegExp(`kernel configuration refused: ${member}: `))
  })

  test.each([
    ['an unknown member', { surplus: 1 }, /surplus/],
    ['another schema', { schema: 'chio.kerneld-config.v2' }, /schema/],
    ['a relative path', { hostSocketPath: 'run/sock' }, /hostSocketPath: expected an absolute path/],
    ['a path that is not normal', { hostSocketPath: '/run/../sock' }, /hostSocketPath/],
    [
      'a socket path of 101 bytes',
      { hostSocketPath: `/${'a'.repeat(100)}` },
      /hostSocketPath: expected at most 100/,
    ],
    ['one socket for both', { hostSocketPath: '/state/authority/sock' }, /authoritySocketPath/],
    [
      'a weak key',
      { clients: [{ uid: 1, gids: [1], callerPublicKey: '0'.repeat(64) }] },
      /callerPublicKey: .*all zero/,
    ],
    ['no client', { clients: [] }, /clients/],
    [
      'one uid twice',
      { clients: [1, 1].map(uid => ({ uid, gids: [1], callerPublicKey: null })) },
      /clients: .*once/,
    ],
    ['an approver without a key', { approvers: [{ approverId: 'lead' }] }, /approvers\.0\.publicKey/],
    [
      'one approver id twice',
      {
        approvers: [people.broker, people.caller].map(({ publicKey }) => ({ approverId: 'lead', publicKey })),
      },
      /approvers: expected each approver id once/,
    ],
    [
      'one approver key twice',
      {
        approvers: ['lead', 'owner'].map(approverId => ({ approverId, publicKey: people.caller.publicKey })),
      },
      /approvers: expected each approver key once/,
    ],
    [
      'an approver id of 257 characters',
      { approvers: [{ approverId: 'a'.repeat(257), publicKey: people.caller.publicKey }] },
      /approverId: expected at most 256/,
    ],
    [
      'a client of the overflow uid',
      { clients: [{ uid: overflowUid(), gids: [1], callerPublicKey: null }] },
      /clients.0.uid: expected a uid of its own/,
    ],
    ['approvers', { approvers: ['x'] }, /approvers/],
    ['a durable mode that forgets', { durableMode: 'off' }, /durableMode: expected `off` only beside/],
    ['development that is no word for it', { unsafeDevelopment: 'yes' }, /unsafeDevelopment/],
    ['a skew of 31 s', { clockSkewSeconds: 31 }, /clockSkewSeconds/],
    ['a nonce of no time', { nonce: { ttlSeconds: 0, capacity: 1 } }, /nonce.ttlSeconds/],
    ['caller delivery', { callerDelivery: {} }, /callerDelivery/],
    [
      'tool calls of no tool',
      { toolCalls: { issuers: [], tools: [] } },
      /toolCalls.tools: expected 1 to 1024/,
    ],
    [
      'a tool that nobody could approve',
      calls({ ...TOOL, requiredApprovals: 1 }),
      /toolCalls\.tools: expected each `requiredApprovals` to be at most the number of `approvers`/,
    ],
    [
      'caller routes on the socket of the hosts',
      { callerDelivery: { ...delivery(), listen: { path: document()['hostSocketPath'] } } },
      /callerDelivery\.listen\.path: expected a socket apart/,
    ],
    ['a tool twice', calls(TOOL, TOOL), /toolCalls.tools: expected each tool of a server once/],
    ['a tool without its effect', calls({ serverId: 'notes', toolName: 'append' }), /tools.0.effectClass/],
    [
      'an effect of another name',
      calls({ ...TOOL, effectClass: 'harmless' }),
      /tools.0.effectClass: expected read/,
    ],
    ['a misspelt member of a tool', calls({ ...TOOL, outputschema: null }), /outputschema/],
    [
      'a schema beyond the subset',
      calls({ ...TOOL, outputSchema: { pattern: 'x' } }),
      /tools.0.outputSchema/,
    ],
    ['an issuer that is no key', { toolCalls: { issuers: ['x'], tools: [TOOL] } }, /toolCalls.issuers.0/],
    [
      'a mode that forgets beside a monetary tool',
      { ...calls(PAID), durableMode: 'off', unsafeDevelopment: true },
      /durableMode: expected another than `off`, which cannot keep the monetary tools/,
    ],
    [
      'a monetary mode without a monetary tool',
      { ...calls(TOOL), durableMode: 'monetary' },
      /durableMode: expected `monetary` only beside a monetary tool/,
    ],
    ['delivery to nobody', { callerDelivery: { tools: [] } }, /callerDelivery\.executor: expected/],
    ['an executor of no epoch', { callerDelivery: delivery({ keyEpoch: 0 }) }, /executor\.keyEpoch/],
    [
      'an executor of a weak key',
      { callerDelivery: delivery({ publicKey: '0'.repeat(64) }) },
      /executor\.publicKey: .*all zero/,
    ],
  ])('is refused with %s', (_what, change, sentence) => {
    expect(() => parse({ ...document(), ...change })).toThrow(sentence)
  })

  test('may name tools, with what is asked of their calls', () => {
    const { toolCalls, durableMode } = parse({ ...document(), ...calls(TOOL, PAID), durableMode: 'monetary' })
    expect(toolCalls?.tools).toEqual([TOOL, PAID])
    expect(durableMode).toBe('monetary')
  })

  test('names the executor that calls are delivered to, beside the tools', () => {
    const config = parse({ ...document(), callerDelivery: delivery(), ...calls(TOOL) })
    const policy = callPolicyOf({ config, keys: makeKernelKeys() })
    expect(policy.executor).toEqual({
      executor_id: 'notes',
      key_epoch: 1,
      public_key: people.caller.publicKey,
    })
    expect(policy.toolOf('notes', 'append')).toMatchObject({ effectClass: 'side_effecting' })
    expect(policy.toolOf('notes', 'delete')).toBeUndefined()
  })

  test.each([
    ['a socket', { path: '/run/chio/routes/sock' }],
    ['a loopback port', { host: '127.0.0.1', port: 65_535 }],
    ['a port of the other loopback', { host: '::1', port: 1 }],
    ['nowhere', null],
  ])('may serve the caller routes at %s', (_where, listen) => {
    const callerDelivery = { ...delivery(), controlTokenFile: '/state/control.token', listen }
    expect(parse({ ...document(), callerDelivery }).callerDelivery).toMatchObject({ listen })
  })

  test.each([
    ['another address', { host: '0.0.0.0', port: 1 }, /listen\.host: expected/],
    ['a name', { host: 'localhost', port: 1 }, /listen\.host/],
    ['port 0', { host: '127.0.0.1', port: 0 }, /listen\.port/],
    ['a port too many', { host: '127.0.0.1', port: 65_536 }, /listen\.port/],
    ['both', { path: '/run/sock', port: 1 }, /listen: expected no member "port"/],
    ['a relative path', { path: 'sock' }, /listen\.path/],
  ])('never serves them at %s', (_where, listen, sentence) => {
    expect(() => parse({ ...document(), callerDelivery: { ...delivery(), listen } })).toThrow(sentence)
  })

  test('is refused with a threshold that its keys cannot reach', () => {
    const administrators = { ...(document()['administrators'] as object), threshold: 2 }
    expect(() => parse({ ...document(), administrators })).toThrow(/administrators: expected a threshold/)
  })
})

describe('the file of the configuration', () => {
  let folder: string
  let path: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'chio-kernel-config-'))
    path = join(folder, 'config.json')
    writeFileSync(path, JSON.stringify(document(), null, 2), { mode: 0o640 })
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  test('may be spaced as people like', () => {
    expect(readKernelConfig(path)).toEqual(kernelConfig('/state', people))
  })

  test.each([0o660, 0o602])('is refused when others may write it (mode %o)', mode => {
    chmodSync(path, mode)
    expect(() => readKernelConfig(path)).toThrow(expect.objectContaining({ code: 'custody' }))
  })

  test('is refused with a member twice', () => {
    writeFileSync(path, JSON.stringify(document()).replace('{', '{"schema":"a",'))
    expect(() => readKernelConfig(path)).toThrow(/each member once/)
  })
})
