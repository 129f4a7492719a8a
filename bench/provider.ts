// Owns the provider of a run from outside: its process, where it is reached, and a plain request to it. The plain
// request is the rival of an execution: node:https, a fresh connection, nothing remembered from the last one.
import { randomBytes } from 'node:crypto'
import { request } from 'node:https'
import { BenchProcess } from './bench-process.js'
import { collectAnswer } from './http-answer.js'
import { PROVIDER_ADDRESS, PROVIDER_HOST, PROVIDER_PATH, type ProviderAddress } from './provider-address.js'

export class Provider implements ProviderAddress {
  readonly token: string
  readonly port: number
  readonly caPem: string
  readonly #process: BenchProcess

  private constructor(process: BenchProcess, token: string, address: ProviderAddress) {
    this.#process = process
    this.token = token
    this.port = address.port
    this.caPem = address.caPem
  }

  static async start(): Promise<Provider> {
    const token = `bench-${randomBytes(24).toString('hex')}`
    const process = BenchProcess.start('provider-process')
    process.say(token)
    return new Provider(process, token, await process.answer<ProviderAddress>())
  }

  /** One plain request with the token in hand: what a tool does that is trusted with it. */
  async plainRequest(body: Uint8Array): Promise<void> {
    const sent = request({
      host: PROVIDER_ADDRESS,
      servername: PROVIDER_HOST,
      port: this.port,
      ca: this.caPem,
      agent: false,
      method: 'POST',
      path: PROVIDER_PATH,
      headers: {
        authorization: `Bearer ${this.token}`,
        'content-length': body.length,
        host: `${PROVIDER_HOST}:${this.port}`,
      },
    })
    await collectAnswer(sent, body)
  }

  async stop(): Promise<void> {
    await this.#process.stop()
  }
}
