import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { brokerStorePath, openBrokerStore } from '../../daemon/broker-store.js'
import { CredentialVault } from '../../daemon/credentials.js'
import { deriveKey, seal, unseal } from '../../daemon/sealed-box.js'
import { ResponseVault } from '../../daemon/stored-responses.js'
import { systemClock } from '../../native/clock.js'
import type { CredentialMutation } from '../../protocol/credential-mutation.js'
import type { Store } from '../../store/store.js'
import { BrokerWorld } from '../support/broker-world.js'

const master = randomBytes(32)
const reference = { credentialId: 'issues', provider: 'tracker', version: 3 }
const mutation = (over: Partial<CredentialMutation> = {}): CredentialMutation => ({
  credential: reference,
  mutation: 'provision',
  placement: { kind: 'api_key_header' },
  schema: 'chio.broker-credential-mutation.v2',
  secret: Buffer.from('canary-5d1f8ab3'),
  ...over,
})

let world: BrokerWorld
let store: Store
let vault: CredentialVault
beforeEach(async () => {
  world = new BrokerWorld({ provider: false })
  await world.found()
  store = await openBrokerStore(world.stateDirectory, { clock: systemClock })
  vault = new CredentialVault(master, 'tenant-a')
  await store.transaction('provision', tx => vault.provision(tx, mutation(), 1))
})
afterEach(async () => {
  store.close()
  await world.close()
})

describe('stored credentials', () => {
  test('give reference and placement without a decryption, and the secret with one', () => {
    const stored = vault.find(store, reference)
    expect(stored).toMatchObject({
      credential: reference,
      placement: { kind: 'api_key_header' },
      enabled: true,
    })
    expect(vault.decryptions).toBe(0)
    expect(Buffer.from(vault.openSecret(store, stored!)).toString()).toBe('canary-5d1f8ab3')
    expect(vault.decryptions).toBe(1)
  })

  test('are known not to open under another master key before one of them is needed', () => {
    vault.assertMasterKey(store)
    expect(() => new CredentialVault(randomBytes(32), 'tenant-a').assertMasterKey(store)).toThrow(
      /master key refused/,
    )
    expect(vault.decryptions).toBe(0)
  })

  test('refuse an existing version, whatever it would be replaced with', async () => {
    const again = store.transaction('provision', tx => vault.provision(tx, mutation(), 2))
    await expect(again).rejects.toMatchObject({ code: 'conflict', reason: 'credential_exists' })
  })

  test('are not found under another tenant, provider, id or version', () => {
    expect(new CredentialVault(master, 'tenant-b').find(store, reference)).toBeUndefined()
    for (const over of [{ provider: 'x' }, { credentialId: 'x' }, { version: 4 }]) {
      expect(vault.find(store, { ...reference, ...over })).toBeUndefined()
    }
  })

  test('do not decrypt with another placement than the stored one', () => {
    const stored = vault.find(store, reference)!
    const moved = { ...stored, placement: { kind: 'bearer_authorization' } as const }
    expect(() => vault.openSecret(store, moved)).toThrow(/sealed record refused/)
  })

  test('do not decrypt when two rows exchange their sealed bytes', async () => {
    const other = { ...reference, version: 4 }
    await store.transaction('provision', tx => vault.provision(tx, mutation({ credential: other }), 2))
    const rows = store.all<{ lookup: Uint8Array; sealed: Uint8Array }>(
      'SELECT lookup, sealed_secret AS sealed FROM credentials',
    )
    expect(rows).toHaveLength(2)
    const swap = store.transaction('swap', tx =>
      tx.run('UPDATE credentials SET sealed_secret = ? WHERE lookup = ?', rows[1]!.sealed, rows[0]!.lookup),
    )
    await expect(swap).rejects.toMatchObject({ code: 'invariant' })
  })

  test('leave neither secret nor reference in the file', () => {
    store.close()
    const file = readFileSync(brokerStorePath(world.stateDirectory))
    for (const word of [
      'canary-5d1f8ab3',
      Buffer.from('canary-5d1f8ab3').toString('base64'),
      'tracker',
      'issues',
    ]) {
      expect([word, file.includes(word)]).toEqual([word, false])
    }
  })
})

describe('a sealed record', () => {
  const key = deriveKey(master, 'purpose', Buffer.from('context'))
  const associated = Buffer.from('associated')

  test('opens with its key and its associated data alone, and not with one byte changed', () => {
    const sealed = seal(key, Buffer.from('content'), associated)
    expect(Buffer.from(unseal(key, sealed, associated)).toString()).toBe('content')
    expect(() => unseal(deriveKey(master, 'purpose', Buffer.from('other')), sealed, associated)).toThrow(
      /refused/,
    )
    expect(() => unseal(key, sealed, Buffer.from('other'))).toThrow(/refused/)
    for (let at = 0; at < sealed.length; at += 1) {
      const changed = Uint8Array.from(sealed)
      changed[at] = (changed[at] ?? 0) ^ 1
      expect(() => unseal(key, changed, associated)).toThrow(/refused/)
    }
    expect(() => unseal(key, sealed.subarray(0, 27), associated)).toThrow(/refused/)
  })
})

describe('stored responses', () => {
  test('open under the name of their own attempt alone', async () => {
    const responses = new ResponseVault(master)
    const body = randomBytes(1_000)
    const attempt = world.attempt()
    const { insertAttempt, newAttempt } = await import('../../daemon/attempts.js')
    const row = newAttempt(attempt.registration, attempt.request, 1)
    const response = { status: 201, headers: [{ name: 'etag', value: Buffer.from('"1"') }], body }
    await store.transaction('complete', tx => {
      insertAttempt(tx, row)
      responses.insert(tx, row.attemptId, responses.seal('another attempt', response))
    })
    expect(() => responses.find(store, row.attemptId)).toThrow(/refused/)
    expect(responses.find(store, 'none')).toBeUndefined()
    const own = world.attempt()
    const ownRow = newAttempt(own.registration, own.request, 1)
    await store.transaction('complete', tx => {
      insertAttempt(tx, ownRow)
      responses.insert(tx, ownRow.attemptId, responses.seal(ownRow.attemptId, response))
    })
    const found = responses.find(store, ownRow.attemptId)
    expect(found?.status).toBe(201)
    expect(Buffer.compare(Buffer.from(found!.body), body)).toBe(0)
  })
})
