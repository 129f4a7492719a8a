// Row execute-vs-https: what a tool waits between its frame and its response, against the same request made
// plainly by someone who holds the token.
import { interleave, millisecondsOf } from '../interleave.js'
import { timedExecution } from '../operation.js'
import { issueBody } from '../request-body.js'
import { type BenchRow, ratioAtMost } from '../row.js'

const NOTE =
  'ours: prepared and started before, timed from the frame written to the response read, in the host process; ' +
  'authority check, two durable commits, signatures and the provider exchange are inside. ' +
  'theirs: node:https with agent:false, full handshake, same provider process, same body, same token'

export const executeVsHttps: BenchRow = {
  id: 'execute-vs-https',
  ours: 'execute: frame written → response read',
  theirs: 'node:https on a fresh connection',
  unit: 'ms',
  goal: ratioAtMost(1, '≤ 1.0 × p50'),
  rounds: 300,
  async measure(lab, rounds) {
    const installation = await lab.installation()
    const body = issueBody()
    const measured = await interleave(
      rounds,
      () => timedExecution(installation),
      () => millisecondsOf(() => installation.provider.plainRequest(body)),
    )
    return { ...measured, note: NOTE }
  },
}
