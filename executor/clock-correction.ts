// Owns the one way in which a ledger's time goes back: whoever holds the executor's key signs that the wall clock is right
// as it is, and that is kept for ever. Without it a clock that was wrong once would stop an executor for good.
// Must never: change a claim or a report. Source: the kernel's correction of its clock.
import {
  digest,
  encode,
  type Infer,
  identifier,
  integer,
  literal,
  object,
  signatureHex,
} from '../protocol/codec.js'
import { sha256Hex, toHex } from '../protocol/digest.js'
import { type PublicKey, type SigningKey, verifySignature } from '../protocol/keys.js'
import { MAXIMUM_INTEGER } from '../protocol/limits.js'
import { anchoredAt } from '../protocol/trusted-clock.js'
import { UnixMs } from '../protocol/unix-time.js'
import type { Store } from '../store/store.js'
import type { Transaction } from '../store/transaction.js'
import { appendLine } from './ledger-history.js'
import { decodeKept, notAsWritten } from './ledger-refusals.js'
import { type LedgerTime, readClock, readingOf, writeClock } from './ledger-time.js'

const CorrectionBody = object({
  boot_id: identifier(),
  boot_ms: integer({ min: 0, max: MAXIMUM_INTEGER }),
  from_unix_ms: UnixMs,
  schema: literal('chio.caller-executor-clock-correction.v1'),
  store_id: digest(),
  to_unix_ms: UnixMs,
})
const SignedCorrection = object({ correction: CorrectionBody, signature: signatureHex() })
export type ClockCorrection = Infer<typeof CorrectionBody>

/** Takes the wall clock as it is, in one transaction. */
export function correctClock(
  tx: Transaction,
  storeId: string,
  time: LedgerTime,
  key: SigningKey,
): ClockCorrection {
  const row = anchoredAt(readingOf(time))
  const correction = {
    boot_id: row.bootId,
    boot_ms: row.anchorBootMs,
    from_unix_ms: readClock(tx)?.highWaterUnixMs ?? row.highWaterUnixMs,
    schema: 'chio.caller-executor-clock-correction.v1',
    store_id: storeId,
    to_unix_ms: row.highWaterUnixMs,
  } as const
  const signature = toHex(key.sign(encode(CorrectionBody, correction)))
  const bytes = encode(SignedCorrection, { correction, signature })
  const { from_unix_ms: from, to_unix_ms: to } = correction
  tx.run('INSERT INTO caller_executor_corrections VALUES (?, ?, ?)', from, to, bytes)
  appendLine(tx, storeId, 'clock', sha256Hex(bytes))
  writeClock(tx, row)
  return correction
}

/**
 * What the lines of the corrections are about.
 * @throws BrokerError `store_replaced` for one that the executor did not sign for this ledger.
 */
export function readCorrections(store: Store, key: PublicKey): readonly string[] {
  const rows = store.all<{ correction: Uint8Array }>('SELECT correction FROM caller_executor_corrections')
  return rows.map(({ correction: bytes }) => {
    const { correction, signature } = decodeKept(SignedCorrection, bytes, 'clock correction')
    const isOwn = correction.store_id === store.storeId
    if (!isOwn || !verifySignature(key, encode(CorrectionBody, correction), signature)) {
      throw notAsWritten('every clock correction as its executor signed it', 'another')
    }
    return sha256Hex(bytes)
  })
}
