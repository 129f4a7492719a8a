// Row vs-nginx: an execution against the proxy that people use instead, which adds the header and nothing else.
import { interleave, millisecondsOf } from '../interleave.js'
import { timedExecution } from '../operation.js'
import { InjectingNginx } from '../peer-nginx.js'
import { issueBody } from '../request-body.js'
import { type BenchRow, ratioAtMost } from '../row.js'

const NOTE =
  'ours: as in execute-vs-https. theirs: nginx on a Unix socket adds the Authorization header and keeps its verified ' +
  'TLS connection to the provider; the client makes a fresh connection for each request. It binds nothing and ' +
  'records nothing'

export const vsNginx: BenchRow = {
  id: 'vs-nginx',
  ours: 'execute: frame written → response read',
  theirs: 'nginx injecting the header',
  unit: 'ms',
  goal: ratioAtMost(6, '≤ 6 × p50'),
  rounds: 300,
  async measure(lab, rounds) {
    const installation = await lab.installation()
    const nginx = await InjectingNginx.start(installation.provider)
    const body = issueBody()
    try {
      const measured = await interleave(
        rounds,
        () => timedExecution(installation),
        () => millisecondsOf(() => nginx.injectedRequest(body)),
      )
      return { ...measured, note: NOTE }
    } finally {
      await nginx.stop()
    }
  },
}
