// Owns second processes that execute an authorization by the ledger of a test, and may end themselves at a cutpoint.
import { writeFileSync } from 'node:fs'
import { encode } from '../../protocol/codec.js'
import { CallerAuthorization } from '../../protocol/caller-authorization.js'
import { type CompiledChild, startChild } from './compiled-child.js'
import { EXECUTOR, type ExecutorWorld, KERNEL_KEY } from './executor-world.js'
import { CALLER_SEED_BYTE } from './own-request.js'

const SCRIPT = `
const { appendFileSync, existsSync, readdirSync, readFileSync } = await import('node:fs')
const { dirname } = await import('node:path')
const { createInterface } = await import('node:readline')
const { setTimeout: delay } = await import('node:timers/promises')
const { ExecutorLedger } = await compiled('executor/ledger')
const { bootIdentity, systemClock } = await compiled('native/clock')
const { decodeCallerAuthorization } = await compiled('protocol/caller-authorization')
const { toHex } = await compiled('protocol/digest')
const { admitPublicKey, signingKey } = await compiled('protocol/keys')
const terms = JSON.parse(args[0])
const die = () => process.kill(process.pid, terms.signal)
let visited = 0
const atCutpoint = name => { if (name === terms.dieAt && ++visited === terms.dieAtVisit) die() }
const authorization = decodeCallerAuthorization(readFileSync(terms.authorization))
const { invocation } = authorization.authorization
const kernelKey = admitPublicKey(terms.kernelKey, 'kernel')
const key = signingKey(new Uint8Array(32).fill(terms.seed))
const options = { atCutpoint, bootId: bootIdentity(), clock: systemClock, lockWaitMs: 120_000 }
const append = async ({ claimId, operationId }) => {
  if (terms.dieAt === 'callback:before_effect') die()
  appendFileSync(terms.journal, operationId + ' ' + claimId + '\\n')
  if (terms.dieAt === 'callback:after_effect') die()
  while (terms.gate !== null && !existsSync(terms.gate)) await delay(10)
  return { output: { operationId }, realized_cost: null }
}
const commands = {
  async execute() {
    const ledger = await ExecutorLedger.open(terms.path, terms.executor, options)
    const report = await ledger.executeOnce(authorization, { invocation, kernelKey, key }, append)
    return { report: toHex(report.bytes) }
  },
  async provision() {
    const made = await ExecutorLedger.provision(terms.path, { capacity: 4, executor: terms.executor, key }, options)
    return made.counts()
  },
  list: () => ({ files: readdirSync(dirname(terms.path)) }),
}
const told = async command => {
  try {
    return await commands[command]()
  } catch (error) {
    return terms.wordy ? { code: error.code, sentence: error.message } : { code: error.code ?? String(error) }
  }
}
say({ ready: true })
for await (const line of createInterface({ input: process.stdin })) say(await told(line))
`

export interface ExecutorChildTerms {
  readonly authorization: CallerAuthorization
  /** The callback returns once this file exists. */
  readonly gate?: string
  /** Where the process ends itself by SIGKILL, and at which passage of it. */
  readonly dieAt?: string
  readonly dieAtVisit?: number
  /** What it does to itself there: SIGKILL unless said. */
  readonly signal?: 'SIGKILL' | 'SIGSTOP'
  /** Where the ledger is, and what leads a process there; the world's own unless said. */
  readonly place?: { readonly path: string; readonly wrapper: readonly string[] }
}

/** A process that executes each time it is told to: `execute()` asks, and the answer is its next line. */
export async function startExecutor(world: ExecutorWorld, terms: ExecutorChildTerms) {
  const authorization = `${world.folder}/${terms.authorization.authorization.invocation.operation_id}.json`
  writeFileSync(authorization, encode(CallerAuthorization, terms.authorization))
  const {
    dieAt = null,
    dieAtVisit = 1,
    gate = null,
    place = { path: world.path, wrapper: [] },
    signal = 'SIGKILL',
  } = terms
  const known = {
    authorization,
    dieAt,
    dieAtVisit,
    executor: EXECUTOR,
    gate,
    journal: world.journal,
    kernelKey: KERNEL_KEY.publicKey,
    path: place.path,
    signal,
    wordy: terms.place !== undefined,
    seed: CALLER_SEED_BYTE,
  }
  const child: CompiledChild = startChild(SCRIPT, [JSON.stringify(known)], { wrapper: place.wrapper })
  await child.next()
  return {
    child,
    /** Tells it to execute; does not wait. */
    tell: () => void child.process.stdin?.write('execute\n'),
    ask(command: 'execute' | 'list' | 'provision') {
      child.process.stdin?.write(`${command}\n`)
      return child.next()
    },
    answer: () => child.next(),
    async end() {
      child.process.stdin?.end()
      await child.ended()
    },
  }
}
export type ExecutorProcess = Awaited<ReturnType<typeof startExecutor>>
