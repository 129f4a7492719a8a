// What the demo proves, one sentence each, judged from the provider's counters, the cage's census, the
// tool's own findings and the verified receipt.
import type { BrokeredRun } from '../host/brokered-run.js'
import type { IssueProvider } from '../selftest/issue-provider.js'

/** What the tool found out about its cage, in its own words. */
export interface ToolReport {
  readonly descriptors: readonly number[]
  readonly sockets: Readonly<Record<string, string>>
  readonly places: readonly string[]
  readonly response: { readonly accepted: boolean; readonly status?: number }
  readonly second: unknown
}

export interface DemoPromise {
  readonly holds: boolean
  readonly sentence: string
}

interface Findings {
  readonly run: BrokeredRun
  readonly report: ToolReport
  readonly provider: IssueProvider
  readonly declined: string | null
  readonly token: string
}

/** Judges every promise of the demo. */
export function promisesOf(findings: Findings): DemoPromise[] {
  return [
    filedOnce(findings),
    descriptors(findings),
    ...confinement(findings),
    slotHeld(findings),
    receipt(findings),
  ]
}

function filedOnce({ provider, run }: Findings): DemoPromise {
  const status = run.outcome.kind === 'response' ? run.outcome.response.status : 0
  return {
    holds: provider.requests === 1 && provider.issues.length === 1 && status === 201,
    sentence: `the issue was filed once: ${provider.requests} request at the provider, HTTP ${status}`,
  }
}

function descriptors({ run, report }: Findings): DemoPromise {
  const closing = run.census.descriptors.filter(({ closeOnExec }) => closeOnExec).map(({ fd }) => fd)
  const own = report.descriptors.join(' ')
  return {
    holds: own === '0 1 2 8',
    sentence: `the tool's descriptors were ${own} (seen from outside before its exec: these, and ${closing.join(' ')} that the exec closed)`,
  }
}

function confinement({ report, token }: Findings): DemoPromise[] {
  const opened = Object.entries(report.sockets).filter(([, answer]) => answer === 'opened')
  const said = JSON.stringify(report)
  return [
    {
      holds: opened.length === 0 && Object.keys(report.sockets).length > 0,
      sentence: `the tool could not open a socket: ${Object.keys(report.sockets).join(', ')} all refused`,
    },
    {
      holds: report.places.length === 0 && !said.includes(token),
      sentence: `the tool could not find the token: ${report.places.length} places in processes, environment and files`,
    },
    {
      holds: typeof report.second === 'string' && report.response.accepted,
      sentence: `the tool could not use descriptor 8 twice: ${String(report.second)}`,
    },
  ]
}

function slotHeld({ declined }: Findings): DemoPromise {
  return {
    holds: declined === 'conflict',
    sentence: `a second preparation was declined while the slot was held: ${declined}`,
  }
}

function receipt({ run }: Findings): DemoPromise {
  const reference = run.outcome.kind === 'response' ? run.outcome.response.receiptReference : 'none'
  return {
    holds: run.outcome.kind === 'response' && run.operation?.state === 'completed',
    sentence: `the receipt verifies against the pinned key: ${reference}`,
  }
}
