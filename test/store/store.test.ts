import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Store } from '../../store/store.js'
import type { Transaction } from '../../store/transaction.js'
import { makeTestStore, type TestStore } from '../support/test-store.js'

let made: TestStore
let store: Store

beforeEach(async () => {
  made = await makeTestStore()
  store = await made.open()
})
afterEach(() => {
  store.close()
  made.remove()
})

const insert = (tx: Transaction, id: string): void =>
  tx.changeOne('INSERT INTO attempt (id, state, version) VALUES (?, ?, ?)', id, 'registered', 1)

describe('a connection', () => {
  test.each([
    ['synchronous', 2],
    ['foreign_keys', 1],
    ['trusted_schema', 0],
    ['recursive_triggers', 1],
    ['busy_timeout', 50],
    ['wal_autocheckpoint', 0],
  ])('reads %s back as %s after its first writes', async (name, value) => {
    await store.transaction('insert', tx => insert(tx, 'a'))
    expect(Object.values(store.get<object>(`PRAGMA ${name}`) ?? {})).toEqual([value])
  })
})

describe('a transaction', () => {
  test('has committed before the caller goes on, in the same tick', () => {
    const done = store.transaction('insert', tx => insert(tx, 'a'))
    expect(store.get('SELECT state FROM attempt WHERE id = ?', 'a')).toEqual({ state: 'registered' })
    return done
  })

  test('gives back what its body returns', async () => {
    await expect(store.transaction('read', tx => tx.get('SELECT 1 AS one'))).resolves.toEqual({ one: 1 })
  })

  test('keeps nothing of a body that throws, and passes its error on', async () => {
    const fault = new Error('stop')
    const body = (tx: Transaction): void => {
      insert(tx, 'a')
      throw fault
    }
    await expect(store.transaction('insert', body)).rejects.toBe(fault)
    expect(store.all('SELECT * FROM attempt')).toEqual([])
    await store.transaction('insert', tx => insert(tx, 'b'))
  })

  test('changes exactly one row in a move, or nothing', async () => {
    await store.transaction('insert', tx => insert(tx, 'a'))
    const move = (version: number) =>
      store.transaction('move', tx =>
        tx.changeOne('UPDATE attempt SET version = version + 1 WHERE id = ? AND version = ?', 'a', version),
      )
    await move(1)
    await expect(move(1)).rejects.toMatchObject({ code: 'conflict', outcome: 'not_started' })
    expect(store.get('SELECT version FROM attempt')).toEqual({ version: 2 })
  })

  test('refuses a promise, a nested transaction, and a COMMIT of its own', async () => {
    await expect(store.transaction('async', async () => {})).rejects.toThrow(/synchronous/)
    await expect(
      store.transaction('nested', () => void store.transaction('inner', () => {}).catch(() => {})),
    ).rejects.toThrow(/nested/)
    await expect(store.transaction('commit', tx => tx.run('COMMIT'))).rejects.toThrow(/ended transaction/)
    await store.transaction('insert', tx => insert(tx, 'a'))
  })

  test('refuses a read outside its own statements', async () => {
    await expect(store.transaction('read', () => store.get('SELECT 1'))).rejects.toThrow(/nested/)
  })

  test('cannot be used after its end', async () => {
    let kept: Transaction | undefined
    await store.transaction('keep', tx => {
      kept = tx
    })
    expect(() => kept?.run('DELETE FROM attempt')).toThrow(/has ended/)
  })

  test('names its cutpoints before and after the commit', async () => {
    store.close()
    const names: string[] = []
    store = await made.open({ atCutpoint: name => names.push(name) })
    await store.transaction('registered', tx => insert(tx, 'a'))
    expect(names).toEqual([
      'store_opened:before_commit',
      'store_opened:after_commit',
      'registered:before_commit',
      'registered:after_commit',
    ])
  })
})

describe('constraints', () => {
  test.each([
    ['a key that exists', 'conflict', "INSERT INTO attempt VALUES ('a', 'x', 1)"],
    ['a failed check', 'invariant', "INSERT INTO attempt VALUES ('b', 'x', 0)"],
    ['a type that is not the column’s', 'invariant', "INSERT INTO attempt VALUES ('b', 'x', 'one')"],
    ['a missing parent', 'invariant', "INSERT INTO event VALUES (2, 'x', 'nobody')"],
    ['an update of an append-only row', 'invariant', "UPDATE event SET text = 'y'"],
    ['a deletion of an append-only row', 'invariant', 'DELETE FROM event'],
    [
      'a replacement of an append-only row',
      'invariant',
      "INSERT OR REPLACE INTO event VALUES (1, 'y', NULL)",
    ],
  ])('name %s as %s', async (_name, code, sql) => {
    await store.transaction('insert', tx => {
      insert(tx, 'a')
      tx.run("INSERT INTO event VALUES (1, 'x', NULL)")
    })
    await expect(store.transaction('refused', tx => tx.run(sql))).rejects.toMatchObject({ code })
    expect(store.all('SELECT text FROM event')).toEqual([{ text: 'x' }])
  })

  test('keep a row’s content out of the sentence', async () => {
    const secret = 'canary-4711'
    const twice = (): Promise<void> => store.transaction('insert', tx => insert(tx, secret))
    await twice()
    await expect(twice()).rejects.toSatisfy(error => !String(error).includes(secret))
  })
})

describe('reads', () => {
  test('refuse a statement that writes', () => {
    expect(() => store.get("INSERT INTO event VALUES (1, 'x', NULL) RETURNING number")).toThrow(/only reads/)
    expect(store.all('SELECT * FROM event')).toEqual([])
  })

  test('take named values, and give blobs back bit for bit', async () => {
    const bytes = Uint8Array.from({ length: 256 }, (_, index) => index)
    await store.transaction('retain', tx =>
      tx.run('INSERT INTO retained VALUES (@id, @bytes)', { id: 1, bytes }),
    )
    const row = store.get<{ bytes: Uint8Array }>('SELECT bytes FROM retained WHERE id = @id', { id: 1 })
    expect(new Uint8Array(row?.bytes ?? [])).toEqual(bytes)
  })

  test('are refused after the end, as transactions are', async () => {
    store.close()
    expect(() => store.get('SELECT 1')).toThrow(/closed/)
    await expect(store.transaction('late', () => {})).rejects.toThrow(/closed/)
  })
})
