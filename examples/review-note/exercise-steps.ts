// Owns the steps of the exercise, in their order: what is typed, and what has to come of it.
// Must never: let a step pass that was not looked at: each gives the first thing that is not as it has to be.
// Source: the captured exercise of caller delivery.
import { copyFileSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { type Ended, type ExercisePlace, NOTE, NOTE_SHA256 } from './exercise-place.js'
import { readPin } from './host-kernel.js'

export interface ExerciseStep {
  readonly step: string
  /** @returns what was missed, else null. */
  readonly run: (at: ExercisePlace) => string | null
}

const COMPLETED = `Completed: original report reconciled.\n\n${NOTE}`
const retainedLine = (key: string): RegExp =>
  new RegExp(`^Signed report retained: ${key}\\nClaim: [0-9a-f-]{36}\\n$`)

interface Expected {
  readonly status: number
  readonly stdout?: string | RegExp
  /** What the refusal has to name. */
  readonly stderr?: RegExp
}

function ends({ status, stderr, stdout }: Ended, expected: Expected): string | null {
  if (status !== expected.status) return `expected exit ${expected.status}, got ${status}: ${stderr.trim()}`
  const out = expected.stdout
  const isSaid = out === undefined || (typeof out === 'string' ? out === stdout : out.test(stdout))
  if (!isSaid) return `expected ${String(out)}, got ${JSON.stringify(stdout)}`
  if (expected.stderr?.test(stderr) === false)
    return `expected ${expected.stderr} to be said, got ${stderr.trim()}`
  return null
}

/** The first of several that was missed. */
function all(...found: readonly (string | null | false)[]): string | null {
  return found.find((missed): missed is string => typeof missed === 'string') ?? null
}

const is = (isSo: boolean, what: string): string | null => (isSo ? null : `expected ${what}`)

/** A refusal that leaves everything as it was. */
function refuses(
  at: ExercisePlace,
  args: readonly string[],
  expected: Omit<Expected, 'stdout'>,
): string | null {
  const before = at.snapshot()
  const missed = ends(at.reviewNote(...args), { ...expected, stdout: '' })
  return all(missed, is(at.snapshot() === before, 'nothing to be changed'))
}

/** While the pins name another epoch, or the ledger is away or another: refused, and put back. */
function withChanged(path: string, change: () => void, run: () => string | null): string | null {
  const aside = `${path}.aside`
  renameSync(path, aside)
  try {
    change()
    return run()
  } finally {
    rmSync(path, { force: true })
    renameSync(aside, path)
  }
}

function isOneLine(path: string): boolean {
  const text = readFileSync(path, 'utf8')
  return text.indexOf('\n') === text.length - 1
}

function isSameFile(one: string, other: string): boolean {
  return readFileSync(one).equals(readFileSync(other))
}

const FIRST: readonly ExerciseStep[] = [
  { step: 'init makes both owners', run: at => ends(at.reviewNote('init'), { status: 0 }) },
  {
    step: 'init again is refused',
    run: at => refuses(at, ['init'], { status: 1, stderr: /installation_exists/ }),
  },
  {
    step: 'authorize note-1',
    run: at =>
      all(
        ends(at.reviewNote('authorize', 'review.txt', '--operation', 'note-1'), {
          status: 0,
          stdout: 'Authorized: note-1\n',
        }),
        is(!existsSync(at.place.journal), 'no journal yet'),
        is(isOneLine(at.files('note-1').reservationReceipt), 'a receipt on a single line'),
      ),
  },
  {
    step: 'changed text under the retained key is refused',
    run: at =>
      refuses(at, ['authorize', 'changed.txt', '--operation', 'note-1'], {
        status: 1,
        stderr: /request_binding_mismatch/,
      }),
  },
  {
    step: 'authorize note-1 again changes nothing',
    run: at => {
      const before = at.snapshot()
      const again = at.reviewNote('authorize', 'review.txt', '--operation', 'note-1', '--json')
      return all(
        ends(again, { status: 0, stdout: /"dispatch_committed":true.*"operation_id":"[0-9a-f]{64}"/ }),
        is(at.snapshot() === before, 'the same authorization'),
      )
    },
  },
  {
    step: 'report before execute is refused',
    run: at => refuses(at, ['report', 'note-1'], { status: 1, stderr: /execute note-1 first/ }),
  },
  {
    step: 'execute note-1 appends once',
    run: at =>
      all(
        ends(at.reviewNote('execute', 'note-1'), { status: 0, stdout: retainedLine('note-1') }),
        is(at.journalLines() === 1, 'one line in the journal'),
      ),
  },
  {
    step: 'report note-1 completes it',
    run: at =>
      all(
        ends(at.reviewNote('report', 'note-1'), { status: 0, stdout: COMPLETED }),
        is(readFileSync(at.files('note-1').result, 'utf8').includes(NOTE_SHA256), 'the digest of the note'),
      ),
  },
]

const RECEIPTS: readonly ExerciseStep[] = [
  {
    step: 'the receipt verifies under the pinned kernel key',
    run: at => {
      const { completedReceipt } = at.files('note-1')
      const key = at.place.host.kernelPublicKey
      return ends(at.chio('receipt', 'verify', '--input', completedReceipt, '--trusted-kernel-pubkey', key), {
        status: 0,
        stdout: 'Verified 1 receipt signatures, signer pins and action hashes.\n',
      })
    },
  },
  {
    step: 'and under no other',
    run: at => {
      at.write('other.pub', `${readPin(at.place).public_key}\n`)
      const { completedReceipt } = at.files('note-1')
      return ends(
        at.chio(
          'receipt',
          'verify',
          '--input',
          completedReceipt,
          '--trusted-kernel-pubkey',
          at.path('other.pub'),
        ),
        { status: 1, stdout: '' },
      )
    },
  },
]

const DROPPED: readonly ExerciseStep[] = [
  {
    step: 'authorize note-2',
    run: at => ends(at.reviewNote('authorize', 'review.txt', '--operation', 'note-2'), { status: 0 }),
  },
  {
    step: 'execute note-2 with a dropped reply ends with 75',
    run: at =>
      all(
        ends(at.reviewNote('execute', 'note-2', '--drop-reply'), { status: 75, stdout: '' }),
        is(!existsSync(at.files('note-2').report), 'no report delivered'),
        is(at.journalLines() === 2, 'two lines in the journal'),
      ),
  },
  {
    step: 'execute note-2 again delivers the original report',
    run: at =>
      all(
        ends(at.reviewNote('execute', 'note-2'), { status: 0, stdout: retainedLine('note-2') }),
        is(at.journalLines() === 2, 'two lines in the journal'),
      ),
  },
  {
    step: 'report note-2 completes it',
    run: at => {
      const missed = ends(at.reviewNote('report', 'note-2'), { status: 0, stdout: COMPLETED })
      copyFileSync(at.files('note-2').report, at.path('original-report.json'))
      copyFileSync(at.files('note-2').completedReceipt, at.path('original-receipt.json'))
      return missed
    },
  },
  {
    step: 'execute and report again repeat the same bytes',
    run: at =>
      all(
        ends(at.reviewNote('execute', 'note-2'), { status: 0, stdout: retainedLine('note-2') }),
        ends(at.reviewNote('report', 'note-2'), { status: 0, stdout: COMPLETED }),
        is(isSameFile(at.path('original-report.json'), at.files('note-2').report), 'the same report'),
        is(
          isSameFile(at.path('original-receipt.json'), at.files('note-2').completedReceipt),
          'the same receipt',
        ),
        is(at.journalLines() === 2, 'two lines in the journal'),
      ),
  },
]

const REPLACED: readonly ExerciseStep[] = [
  {
    step: 'a wrong epoch is refused by both owners',
    run: at => {
      const { executorPin } = at.place
      const changed = readFileSync(executorPin, 'utf8').replace('"key_epoch":1', '"key_epoch":2')
      const change = (): void => writeFileSync(executorPin, changed, { mode: 0o600 })
      return withChanged(executorPin, change, () =>
        all(
          refuses(at, ['execute', 'note-1'], { status: 1, stderr: /executor_mismatch/ }),
          refuses(at, ['report', 'note-1'], { status: 1, stderr: /executor_changed/ }),
        ),
      )
    },
  },
  {
    step: 'a missing ledger is refused, and none is made',
    run: at =>
      withChanged(
        at.place.ledger,
        () => undefined,
        () =>
          all(
            refuses(at, ['execute', 'note-2'], { status: 1, stderr: /store_missing/ }),
            is(!existsSync(at.place.ledger), 'no new ledger'),
          ),
      ),
  },
  {
    step: 'a copied ledger is refused',
    run: at => {
      const { ledger } = at.place
      return withChanged(
        ledger,
        () => copyFileSync(`${ledger}.aside`, ledger),
        () => refuses(at, ['execute', 'note-2'], { status: 1, stderr: /store_replaced/ }),
      )
    },
  },
  {
    step: 'both operations stand as they were',
    run: at =>
      all(
        ends(at.reviewNote('execute', 'note-1'), { status: 0, stdout: retainedLine('note-1') }),
        ends(at.reviewNote('report', 'note-1'), { status: 0, stdout: COMPLETED }),
        is(at.journalLines() === 2, 'two notes in total'),
      ),
  },
]

export const EXERCISE_STEPS: readonly ExerciseStep[] = [...FIRST, ...RECEIPTS, ...DROPPED, ...REPLACED]
