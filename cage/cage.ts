/**
 * The life of one cage: it waits, is armed once, runs once, ends. A second handoff or go throws before any system
 * call. Whatever fails on the way ends the cage and is a CageRefusal; the caller closes its copy of the stream right
 * after handOff settled, whatever came of it: then the refused cage held the last other one.
 */
import { fstatSync } from 'node:fs'
import { systemClock } from '../native/clock.js'
import { NS_PER_MS } from '../protocol/clock.js'
import { sendDescriptors, sealedMemfd, closeDescriptor } from '../native/index.js'
import { BrokerError } from '../protocol/errors.js'
import { FRAME_PREFIX_BYTES } from '../protocol/limits.js'
import type { Bubblewrap } from './bubblewrap.js'
import type { CageProcess } from './cage-process.js'
import { takeArmedCensus, takeWaitingCensus, type CageCensus, type WaitingCensus } from './census.js'
import { ENDED, receiveWord, type Word } from './channel.js'
import { launchCage, type LaunchOptions, type Launched } from './launch.js'
import type { CagePolicy } from './policy.js'
import { refusedBy, refusedCheck } from './refusal.js'
import { RunningCage } from './running.js'

export type OpenOptions = Partial<LaunchOptions>

/** bwrap needs some 15 ms; a machine under load gets its time. */
const LAUNCH_TIMEOUT_MS = 10_000

interface Cage {
  readonly process: CageProcess
  readonly policy: CagePolicy
  readonly bubblewrap: Bubblewrap
  /** A deadline for the next step. */
  readonly deadline: () => bigint
}

async function expectWord(cage: Cage, expected: string): Promise<Word> {
  const word = await receiveWord(cage.process.control, cage.deadline())
  if (word === ENDED) throw await cage.process.goneBefore(expected)
  if (word.text !== expected) throw refusedCheck('cage-init', `"${expected}"`, 'another word')
  return word
}

/** Runs a step; a failure of any kind ends the cage before it is thrown on. */
async function refusing<T>(cage: Cage, step: () => Promise<T>): Promise<T> {
  try {
    return await step()
  } catch (error) {
    // What refused is what the caller has to know, also when the end itself is slow.
    await cage.process.end(cage.deadline()).catch(() => undefined)
    throw refusedBy(error, 'cage')
  }
}

function consumed(what: string): BrokerError {
  return new BrokerError(
    'prepared_stream_consumed',
    `${what} refused: expected an unused cage, got one that served before; open another`,
  )
}

/** Starts bwrap and cage-init, and reads namespaces, ids, capabilities and environment while it waits. */
export async function openCage(policy: CagePolicy, options: OpenOptions = {}): Promise<WaitingCage> {
  const { clock = systemClock, launchTimeoutMs = LAUNCH_TIMEOUT_MS } = options
  const launched = launchCage(policy, { ...options, clock })
  const deadline = (): bigint => clock.bootNs() + BigInt(launchTimeoutMs) * NS_PER_MS
  const cage = { process: launched.process, policy, bubblewrap: launched.bubblewrap, deadline }
  return refusing(cage, async () => new WaitingCage(cage, await awaitReady(cage, launched)))
}

async function awaitReady(cage: Cage, launched: Launched): Promise<WaitingCensus> {
  const { sender } = await expectWord(cage, 'ready')
  const census = takeWaitingCensus(sender.pid, launched.identity)
  cage.process.watchWarden(census.wardenPid)
  return census
}

export class WaitingCage {
  readonly census: WaitingCensus
  readonly #cage: Cage
  #used = false

  constructor(cage: Cage, census: WaitingCensus) {
    this.#cage = cage
    this.census = census
  }

  /**
   * Hands the stream and the exact frame over, waits until every wall stands, and looks at it from outside.
   * @param streamFd connected Unix stream; the caller keeps its copy, and closes it when this settled
   * @param frame the exact frame, its four length bytes included
   * @throws BrokerError prepared_stream_consumed before any system call when it was called before
   * @throws CageRefusal naming the failing call or check; the cage is gone then
   */
  async handOff(streamFd: number, frame: Uint8Array): Promise<ArmedCage> {
    if (this.#used) throw consumed('handoff')
    this.#used = true
    const cage = this.#cage
    return refusing(cage, async () => {
      const streamInode = fstatSync(streamFd, { bigint: true }).ino
      sendHandoff(cage, streamFd, frame)
      const { sender } = await expectWord(cage, 'armed')
      if (sender.pid !== this.census.pid)
        throw refusedCheck('cage-init', 'the process that waited', 'another')
      const census = takeArmedCensus(this.census, { streamInode, exec: cage.policy.exec })
      return new ArmedCage(cage, { ...census, bubblewrap: cage.bubblewrap })
    })
  }

  async close(): Promise<void> {
    this.#used = true
    await this.#cage.process.end(this.#cage.deadline())
  }
}

function sendHandoff(cage: Cage, streamFd: number, frame: Uint8Array): void {
  const maximumBytes = cage.policy.requestBytes + FRAME_PREFIX_BYTES
  if (frame.length > maximumBytes) {
    throw refusedCheck('request frame', `at most ${maximumBytes} bytes`, String(frame.length))
  }
  const request = sealedMemfd('chio-request', frame)
  try {
    sendDescriptors(cage.process.control, Buffer.from('handoff', 'latin1'), [streamFd, request])
  } finally {
    closeDescriptor(request)
  }
}

/** The whole of what was read from outside: the host's own statement, unsigned. */
export interface Census extends CageCensus {
  readonly bubblewrap: Bubblewrap
}

export class ArmedCage {
  readonly census: Census
  readonly #cage: Cage
  #used = false

  constructor(cage: Cage, census: Census) {
    this.#cage = cage
    this.census = census
  }

  /** Lets the tool run. Whether its exec happened, `started` of the running cage says. */
  go(): RunningCage {
    if (this.#used) throw consumed('go')
    this.#used = true
    return new RunningCage(this.#cage.process, this.#cage.deadline, this.#cage.policy.tool.path)
  }

  async close(): Promise<void> {
    this.#used = true
    await this.#cage.process.end(this.#cage.deadline())
  }
}
