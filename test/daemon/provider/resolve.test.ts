import { describe, expect, it, vi } from 'vitest'
import { OpeningBudget } from '../../../daemon/provider/budget.js'
import { type HostLookup, PublicResolver, systemLookup } from '../../../daemon/provider/resolve.js'
import { BrokerError } from '../../../protocol/errors.js'
import { runningClock } from '../../support/clock.js'

const never = (): AbortSignal => new AbortController().signal
const answering = (...addresses: string[]): PublicResolver =>
  new PublicResolver(() => Promise.resolve(addresses))
const inMs = (milliseconds: number): bigint => runningClock.bootNs() + BigInt(milliseconds) * 1_000_000n

describe('resolution', () => {
  it('returns public addresses in the order of the answer, each once', async () => {
    const resolver = answering('2606:4700:4700::1111', '1.1.1.1', '1.1.1.1')
    expect(await resolver.resolve('example.com', never())).toEqual(['2606:4700:4700::1111', '1.1.1.1'])
  })

  it.each([
    ['metadata alone', ['169.254.169.254']],
    ['a mixed set', ['1.1.1.1', '169.254.169.254']],
    ['a mixed set, the bad one first', ['10.0.0.1', '1.1.1.1']],
    ['a mapped metadata address', ['::ffff:169.254.169.254']],
    ['the IPv6 metadata address', ['fd00:ec2::254', '1.1.1.1']],
    ['NAT64 to metadata', ['64:ff9b::a9fe:a9fe']],
    ['a zone', ['2606:4700::1%eth0']],
    ['no address at all', ['not-an-address']],
  ])('refuses the whole answer for %s', async (_what, addresses) => {
    await expect(answering(...addresses).resolve('example.com', never())).rejects.toMatchObject({
      code: 'authorization_denied',
      outcome: 'not_started',
    })
  })

  it('accepts 16 addresses and refuses 17 and none', async () => {
    const many = (count: number): string[] =>
      Array.from({ length: count }, (_unused, index) => `1.1.1.${index}`)
    expect(await answering(...many(16)).resolve('example.com', never())).toHaveLength(16)
    await expect(answering(...many(17)).resolve('example.com', never())).rejects.toMatchObject({
      code: 'upstream',
    })
    await expect(answering().resolve('example.com', never())).rejects.toMatchObject({ code: 'upstream' })
  })

  it('refuses localhost as this very machine resolves it', async () => {
    await expect(new PublicResolver(systemLookup).resolve('localhost', never())).rejects.toThrow(/loopback/)
  })

  it('says the code of a failed lookup', async () => {
    const failing = new PublicResolver(() =>
      Promise.reject(Object.assign(new Error('x'), { code: 'ENOTFOUND' })),
    )
    await expect(failing.resolve('example.com', never())).rejects.toThrow(
      /unresolved: got ENOTFOUND for example.com/,
    )
  })

  it('refuses each rebinding answer, though the one before was public', async () => {
    const answers = [['1.1.1.1'], ['169.254.169.254']]
    const resolver = new PublicResolver(() => Promise.resolve(answers.shift() ?? []))
    expect(await resolver.resolve('rebinding.test', never())).toEqual(['1.1.1.1'])
    await expect(resolver.resolve('rebinding.test', never())).rejects.toMatchObject({
      code: 'authorization_denied',
    })
  })
})

describe('a lookup that hangs', () => {
  const hanging = (): {
    resolver: PublicResolver
    lookup: ReturnType<typeof vi.fn<HostLookup>>
    release: (addresses: string[]) => void
  } => {
    let release: (addresses: string[]) => void = () => undefined
    const lookup = vi.fn<HostLookup>(() => new Promise(resolve => (release = resolve)))
    return { resolver: new PublicResolver(lookup), lookup, release: addresses => release(addresses) }
  }

  it('is waited for until the deadline only', async () => {
    const budget = new OpeningBudget(runningClock, inMs(30))
    const before = Date.now()
    await expect(hanging().resolver.resolve('example.com', budget.signal)).rejects.toMatchObject({
      code: 'upstream',
      kind: 'unresolved',
      got: 'no answer for example.com in time',
    })
    expect(Date.now() - before).toBeLessThan(1_000)
  })

  it('is left at once on cancellation', async () => {
    const cancel = new AbortController()
    const waiting = hanging().resolver.resolve('example.com', cancel.signal)
    cancel.abort(new BrokerError('upstream', 'dropped'))
    await expect(waiting).rejects.toThrow('dropped')
  })

  it('is joined by the next request for the same host, and asked anew after its answer', async () => {
    const { resolver, lookup, release } = hanging()
    const both = [resolver.resolve('example.com', never()), resolver.resolve('example.com', never())]
    expect(lookup).toHaveBeenCalledTimes(1)
    release(['1.1.1.1'])
    expect(await Promise.all(both)).toEqual([['1.1.1.1'], ['1.1.1.1']])
    void resolver.resolve('example.com', never())
    expect(lookup).toHaveBeenCalledTimes(2)
  })

  it('leaves room for 15 others and refuses the one after', async () => {
    const { resolver, lookup } = hanging()
    for (let index = 0; index < 16; index++) void resolver.resolve(`host-${index}.example`, never())
    await expect(resolver.resolve('host-16.example', never())).rejects.toThrow(/16 lookups that hang already/)
    expect(lookup).toHaveBeenCalledTimes(16)
  })
})
