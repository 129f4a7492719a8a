// Owns daemons of a trial that end themselves at a cutpoint and whose clock is moved on: started in the place of the
// shipped ones, on the same STATE, under the same uids.
// Must never: leave an order unanswered that a living daemon got.
import type { DaemonCommand, DaemonProcess } from '../daemon-process.js'
import type { DaemonRole } from '../daemon-commands.js'
import type { Trial } from '../trial.js'
import type { Measured } from '../soak/measured.js'
import type { SteeringOrder, SteeringStart } from './steering.js'

/** Names of cutpoints that were reached, by whichever daemon. */
export type Reached = Set<string>

type Answers = Map<number, (measured: Measured | undefined) => void>

export class SteeredDaemon {
  readonly process: DaemonProcess
  readonly #answers: Answers
  #orders = 0

  private constructor(process: DaemonProcess, answers: Answers) {
    this.process = process
    this.#answers = answers
  }

  /** @throws BrokerError when it ended first, at its cutpoint too. */
  static async start(
    { trial, role }: { readonly trial: Trial; readonly role: DaemonRole },
    start: SteeringStart,
    reached: Reached,
  ): Promise<SteeredDaemon> {
    const answers: Answers = new Map()
    const onLogLine = (line: string): void => heard(line, answers, reached)
    const process = await trial.start(role, command => steeredCommand(command, role, start, onLogLine))
    return new SteeredDaemon(process, answers)
  }

  /** The cutpoint at which it ends itself. */
  async endAt(name: string | null): Promise<void> {
    await this.#order({ endAt: name })
  }

  /** Lets time pass on its clock. */
  async pass(milliseconds: number): Promise<void> {
    await this.#order({ passMs: milliseconds })
  }

  /** Steps the hand of its wall clock alone, back too. */
  async stepWall(milliseconds: number): Promise<void> {
    await this.#order({ stepWallMs: milliseconds })
  }

  /** What it holds; undefined when it ended first. */
  measure(): Promise<Measured | undefined> {
    return this.#order({ measure: true })
  }

  async #order(order: Omit<SteeringOrder, 'id'>): Promise<Measured | undefined> {
    const id = ++this.#orders
    const answered = new Promise<Measured | undefined>(resolve => this.#answers.set(id, resolve))
    this.process.tell(JSON.stringify({ id, ...order }))
    const measured = await Promise.race([answered, this.process.ended.then(() => undefined)])
    this.#answers.delete(id)
    return measured
  }
}

function steeredCommand(
  command: DaemonCommand,
  role: DaemonRole,
  { aheadMs, endAt }: SteeringStart,
  onLogLine: (line: string) => void,
): DaemonCommand {
  const steering = ['--ahead-ms', String(aheadMs), ...(endAt === null ? [] : ['--end-at', endAt])]
  const steeredBy = `bin/${role}-entry.js`
  return { ...command, steeredBy, args: [...command.args, ...steering], onLogLine }
}

interface Heard {
  readonly event: string
  readonly id?: number
  readonly name?: string
  readonly measured?: Measured
}

function heard(line: string, answers: Answers, reached: Reached): void {
  if (!line.startsWith('{"event":"')) return
  const { event, id, measured, name } = JSON.parse(line) as Heard
  if (event === 'cutpoint' && name !== undefined) reached.add(name)
  if (event === 'steered' && id !== undefined) answers.get(id)?.(measured)
}
