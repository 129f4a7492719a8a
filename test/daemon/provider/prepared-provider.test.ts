import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { PreparedProvider } from '../../../daemon/provider/prepared-provider.js'
import { type HostLookup, PublicResolver } from '../../../daemon/provider/resolve.js'
import { startProvider, type TestProvider } from '../../support/provider.js'
import { endingOf, exchangeOn, inMs, termsFor } from '../../support/provider-exchange.js'

const pause = (milliseconds: number): Promise<void> =>
  new Promise(resolve => setTimeout(resolve, milliseconds))
let served: TestProvider
beforeEach(async () => {
  served = await startProvider()
})
afterEach(() => served.close())

describe('the provider of a prepared attempt', () => {
  it('is connected ahead, and hands out that connection', async () => {
    const prepared = new PreparedProvider(termsFor(served))
    await vi.waitFor(() => expect(served.sockets).toHaveLength(1))
    const connection = await prepared.alive()
    expect(connection.isAlive()).toBe(true)
    expect(endingOf(await exchangeOn(connection, served))).toBe('response 200')
    expect([served.connections, served.hits]).toEqual([1, 1])
  })

  it('is replaced once when the connection died while waiting, at the very moment of use', async () => {
    const prepared = new PreparedProvider(termsFor(served))
    await vi.waitFor(() => expect(served.sockets).toHaveLength(1))
    served.sockets[0]?.end()
    await pause(20)
    const connection = await prepared.alive()
    expect(endingOf(await exchangeOn(connection, served))).toBe('response 200')
    expect([served.connections, served.hits]).toEqual([2, 1])
  })

  it('is not replaced twice', async () => {
    const prepared = new PreparedProvider(termsFor(served))
    await vi.waitFor(() => expect(served.sockets).toHaveLength(1))
    served.sockets[0]?.end()
    await pause(20)
    await prepared.alive()
    await vi.waitFor(() => expect(served.sockets).toHaveLength(2))
    served.sockets[1]?.end()
    await pause(20)
    await expect(prepared.alive()).rejects.toMatchObject({ code: 'upstream', outcome: 'not_started' })
    expect([served.connections, served.hits]).toEqual([2, 0])
  })

  it('is not replaced after the deadline', async () => {
    const prepared = new PreparedProvider(termsFor(served, { deadlineBootNs: inMs(200) }))
    await vi.waitFor(() => expect(served.sockets).toHaveLength(1))
    served.sockets[0]?.end()
    await pause(250)
    await expect(prepared.alive()).rejects.toThrow(/unreachable: got none in time/)
    expect(served.connections).toBe(1)
  })

  it('that could not be reached is tried once more', async () => {
    const { port } = served
    await served.close()
    const prepared = new PreparedProvider(termsFor(served))
    await pause(30)
    served = await startProvider({ port })
    expect(endingOf(await exchangeOn(await prepared.alive(), served))).toBe('response 200')
  })

  it('whose address was refused is not tried again', async () => {
    const lookup = vi.fn<HostLookup>(() => Promise.resolve(['169.254.169.254']))
    const route = { host: 'metadata.test', port: served.port, local: null }
    const prepared = new PreparedProvider(termsFor(served, { route, resolver: new PublicResolver(lookup) }))
    await expect(prepared.alive()).rejects.toMatchObject({ code: 'authorization_denied' })
    expect([lookup.mock.calls.length, served.connections]).toEqual([1, 0])
  })

  it('that was dropped opens nothing more', async () => {
    const prepared = new PreparedProvider(termsFor(served))
    await vi.waitFor(() => expect(served.sockets).toHaveLength(1))
    prepared.drop()
    await expect(prepared.alive()).rejects.toMatchObject({ code: 'upstream' })
    await pause(30)
    expect(served.connections).toBe(1)
  })

  it('leaves no socket behind after 200 preparations that were never used, and no request', async () => {
    for (let round = 0; round < 200; round++) {
      const prepared = new PreparedProvider(termsFor(served))
      if (round % 2 === 0) await prepared.alive()
      prepared.drop()
    }
    await vi.waitFor(() => expect(served.sockets.every(socket => socket.destroyed)).toBe(true))
    expect(served.hits).toBe(0)
  })
})
