// Owns docs/refusals.md as text: the refusal table, one row a reason and moment. A test compares the two.
import { peerSees, type RefusalRow } from './refusal-row.js'
import { REFUSALS } from './refusals.js'

const HEAD = `# Refusals

Every reason for which the broker refuses or ends something. The peer sees the fixed code and nothing else; the
operator sees the reason and the sentence in the log, in \`slot_status\` and in \`attempt_status\`. Moments:
*connection* before a request is read, *request* an ordinary operation, *preparation* before the acknowledgement,
*held* while the stream waits for its frame, *consumption* after the exact frame and before the dispatch commit,
*dispatched* after it, *start* when the daemon starts. A test walks every row against a running daemon.

| reason | check | when | peer sees | operator sees | attempt afterwards |
|---|---|---|---|---|---|
`

export function refusalsDocument(): string {
  const rows = Object.entries(REFUSALS).flatMap(([reason, row]: [string, RefusalRow]) =>
    row.when.map(
      moment =>
        `| \`${reason}\` | ${row.check} | ${moment} | ${peerSees(row, moment)} | ${row.check} refused: expected ${row.expected} | ${row.attempt} |`,
    ),
  )
  return `${HEAD}${rows.join('\n')}\n`
}
