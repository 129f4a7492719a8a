// chio broker capacity: how often one slot declines, from the rate of operations and how long each holds it. One
// slot is a loss system: an arrival that finds it held is declined at once, nothing queues.
// Must never: be read as a measurement. It is arithmetic over what the operator measured.
// Source: Erlang B for one server, B = a / (1 + a) with a = arrivals a second × seconds held.
import { BrokerError } from '../protocol/errors.js'
import { given, type CommonOptions, print } from './output.js'

export interface CapacityOptions extends CommonOptions {
  readonly rate: string
  readonly hold: string
}

/** What one slot does with a stream of arrivals. Shares are from 0 to 1. */
export interface SlotLoad {
  readonly ratePerSecond: number
  readonly load: number
  readonly declinedShare: number
  readonly servedPerSecond: number
  readonly busyShare: number
}

const MS_PER_SECOND = 1_000
const PERCENT = 100
/** The asked rate stands among its neighbours, so that one sees where it leads. */
const FACTORS = [0.1, 0.25, 0.5, 1, 2, 4]
/** Shares of declines for which the highest rate is given. */
const TOLERATED_SHARES = [0.001, 0.01, 0.05, 0.1]
const LARGEST = 1e9

export function slotLoad(ratePerSecond: number, holdMs: number): SlotLoad {
  const load = (ratePerSecond * holdMs) / MS_PER_SECOND
  const declinedShare = load / (1 + load)
  // What is served is what is not declined; the slot is busy for as long as that holds it.
  return {
    ratePerSecond,
    load,
    declinedShare,
    servedPerSecond: ratePerSecond * (1 - declinedShare),
    busyShare: declinedShare,
  }
}

/** The highest rate at which at most this share is declined. */
export function rateFor(declinedShare: number, holdMs: number): number {
  return (declinedShare / (1 - declinedShare)) * (MS_PER_SECOND / holdMs)
}

export function showCapacity(options: CapacityOptions): void {
  const rate = positive(options.rate, '--rate')
  const holdMs = positive(options.hold, '--hold')
  const rows = FACTORS.map(factor => slotLoad(rate * factor, holdMs))
  const tolerated = TOLERATED_SHARES.map(share => ({
    declinedShare: share,
    highestRatePerSecond: rateFor(share, holdMs),
  }))
  const document = {
    schema: 'chio.broker-capacity.v1',
    holdMs,
    asked: slotLoad(rate, holdMs),
    rows,
    tolerated,
  }
  print(options, document, [
    `one slot, held ${figure(holdMs)} ms an operation; an arrival that finds it held is declined, nothing queues`,
    '',
    line('arrivals /s', 'load', 'declined', 'served /s', 'slot busy'),
    ...rows.map(row =>
      line(
        `${row.ratePerSecond === rate ? '> ' : ''}${figure(row.ratePerSecond)}`,
        figure(row.load),
        percent(row.declinedShare),
        figure(row.servedPerSecond),
        percent(row.busyShare),
      ),
    ),
    '',
    ...tolerated.map(
      ({ declinedShare, highestRatePerSecond }) =>
        `at most ${percent(declinedShare)} declined: up to ${figure(highestRatePerSecond)} /s`,
    ),
  ])
}

function line(...cells: readonly string[]): string {
  return cells.map(cell => cell.padStart(12)).join('')
}

/** Three digits. */
function figure(value: number): string {
  return String(Number(value.toPrecision(3)))
}

function percent(share: number): string {
  return `${figure(share * PERCENT)} %`
}

/** @throws BrokerError `usage` naming the option. */
function positive(text: string, option: string): number {
  const value = /^[0-9]+(\.[0-9]+)?$/.test(text) ? Number(text) : Number.NaN
  if (value > 0 && value <= LARGEST) return value
  throw new BrokerError(
    'usage',
    `${option} refused: expected a number above 0, such as 2 or 0.5, got ${given(text)}`,
  )
}
