// Owns a DNS server on a loopback address of its own, port 53, for tests of the real resolver: it answers from
// a table, alternates where an entry holds several answers, and is silent where it holds none.
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { isIPv4, isIPv6 } from 'node:net'

/** Addresses, or `cname:NAME` first, for each question in turn; the last repeats. */
export type NameAnswers = Readonly<Record<string, readonly (readonly string[])[]>>

const TYPE_A = 1
const TYPE_CNAME = 5
const TYPE_AAAA = 28
/** A pointer to byte 12, where the question's name stands. */
const QUESTION_NAME = Buffer.from([0xc0, 0x0c])

export class NameServer {
  readonly address = `127.53.${1 + Math.floor(Math.random() * 250)}.${1 + Math.floor(Math.random() * 250)}`
  readonly #answers: NameAnswers
  readonly #asked = new Map<string, number>()
  readonly #socket: Socket = createSocket('udp4')

  constructor(answers: NameAnswers) {
    this.#answers = answers
    this.#socket.on('message', (query, from) => {
      const reply = this.#reply(query)
      if (reply !== undefined) this.#socket.send(reply, from.port, from.address)
    })
  }

  async listen(): Promise<void> {
    this.#socket.bind(53, this.address)
    await once(this.#socket, 'listening')
  }

  close(): void {
    this.#socket.close()
  }

  #reply(query: Buffer): Buffer | undefined {
    const { name, end, type } = question(query)
    const answers = this.#answers[name]
    if (answers === undefined || answers.length === 0) return undefined
    const records = recordsOf(this.#turn(name, type, answers), type)
    const header = Buffer.from(query.subarray(0, 12))
    header.writeUInt16BE(0x8180, 2)
    header.writeUInt16BE(records.length, 6)
    header.writeUInt32BE(0, 8)
    return Buffer.concat([header, query.subarray(12, end), ...records])
  }

  /** Both address families of one lookup get the same turn. */
  #turn(name: string, type: number, answers: readonly (readonly string[])[]): readonly string[] {
    const key = `${name} ${type}`
    const count = this.#asked.get(key) ?? 0
    this.#asked.set(key, count + 1)
    return answers[Math.min(count, answers.length - 1)] ?? []
  }
}

function question(query: Buffer): { name: string; end: number; type: number } {
  const labels: string[] = []
  let at = 12
  while ((query[at] ?? 0) > 0) {
    const length = query[at] as number
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += length + 1
  }
  return { name: labels.join('.').toLowerCase(), end: at + 5, type: query.readUInt16BE(at + 1) }
}

/** A `cname:` entry names the owner of the entries after it. */
function recordsOf(entries: readonly string[], type: number): Buffer[] {
  let owner: Buffer = QUESTION_NAME
  return entries.flatMap(entry => {
    if (!entry.startsWith('cname:')) return addressRecord(owner, entry, type)
    const alias = nameBytes(entry.slice(6))
    const record = resourceRecord(owner, TYPE_CNAME, alias)
    owner = alias
    return [record]
  })
}

function addressRecord(owner: Buffer, address: string, type: number): Buffer[] {
  if (type === TYPE_A && isIPv4(address)) {
    return [resourceRecord(owner, type, Buffer.from(address.split('.').map(Number)))]
  }
  if (type === TYPE_AAAA && isIPv6(address)) {
    return [resourceRecord(owner, type, Buffer.from(address.replaceAll(':', ''), 'hex'))]
  }
  return []
}

/** Type, class IN, time to live 0, data. */
function resourceRecord(owner: Buffer, type: number, data: Buffer): Buffer {
  const fixed = Buffer.alloc(10)
  fixed.writeUInt16BE(type, 0)
  fixed.writeUInt16BE(1, 2)
  fixed.writeUInt16BE(data.length, 8)
  return Buffer.concat([owner, fixed, data])
}

function nameBytes(name: string): Buffer {
  const labels = name
    .split('.')
    .map(label => Buffer.concat([Buffer.of(label.length), Buffer.from(label, 'latin1')]))
  return Buffer.concat([...labels, Buffer.of(0)])
}
