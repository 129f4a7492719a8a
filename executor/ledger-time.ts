// Owns the time of a ledger: read from both hands, judged by what the ledger saw before, and kept as its high water.
// Must never: read a clock of its own, or let a clock that is not believed begin anything. What was begun still ends.
// Source: the clock row of the caller execution ledger; the kernel's rule of a clock that is believed.
import { type Clock, NS_PER_MS } from '../protocol/clock.js'
import {
  type ClockJudgement,
  type ClockReading,
  type ClockRow,
  judgeClock,
} from '../protocol/trusted-clock.js'
import { BrokerError } from '../protocol/errors.js'
import type { Transaction } from '../store/transaction.js'

export interface LedgerTime {
  readonly clock: Clock
  /** The boot in which the clock's elapsed time counts. */
  readonly bootId: string
  /** How far the wall clock may stray from the boot clock before nothing may begin. */
  readonly skewMs: number
}

export function readingOf({ bootId, clock }: LedgerTime): ClockReading {
  return { bootId, bootMs: Number(clock.bootNs() / NS_PER_MS), unixMs: clock.unixMs() }
}

/** Now, by the clock and a row of the ledger. */
export function judgedNow(time: LedgerTime, known: ClockRow | undefined): ClockJudgement {
  return judgeClock(known, readingOf(time), time.skewMs)
}

/** @throws BrokerError `clock_jumped`. */
export function assertBelieved({ fault }: ClockJudgement): void {
  if (fault !== null) throw new BrokerError('clock_jumped', fault, { outcome: 'not_started' })
}

const READ = `SELECT boot_id AS bootId, anchor_unix_ms AS anchorUnixMs, anchor_boot_ms AS anchorBootMs,
  high_water_unix_ms AS highWaterUnixMs FROM caller_executor_clock`
const WRITE = `INSERT INTO caller_executor_clock VALUES (1, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET boot_id = excluded.boot_id,
  anchor_unix_ms = excluded.anchor_unix_ms, anchor_boot_ms = excluded.anchor_boot_ms,
  high_water_unix_ms = excluded.high_water_unix_ms`

export function readClock(rows: Pick<Transaction, 'get'>): ClockRow | undefined {
  return rows.get<ClockRow>(READ)
}

export function writeClock(tx: Transaction, row: ClockRow): void {
  tx.run(WRITE, row.bootId, row.anchorUnixMs, row.anchorBootMs, row.highWaterUnixMs)
}

/** Moves the high water to now, in the transaction that is stamped with it. */
export function advanceClock(tx: Transaction, time: LedgerTime): ClockJudgement {
  const judged = judgedNow(time, readClock(tx))
  writeClock(tx, judged.row)
  return judged
}
