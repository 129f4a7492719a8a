// Owns the moments at which a crash round ends a process: the five boundaries of caller delivery, and what has to be
// known after each.
// Must never: name a moment that is not reached: a round that was not killed is a miss.
// Source: the facts' table of crashes: before capture; captured, unclaimed; claimed, no report; report durable, reply
// lost; raw return durable.

export type Interrupted = 'authorize' | 'execute' | 'report'

export interface CrashBoundary {
  readonly boundary: string
  /** `completed`: exactly one effect, told; `unknown`: at most one, and nobody is told a result. */
  readonly end: 'completed' | 'unknown'
  readonly moments: readonly (readonly [Interrupted, cutpoint: string])[]
}

function during(
  command: Interrupted,
  ...cutpoints: readonly string[]
): readonly (readonly [Interrupted, string])[] {
  return cutpoints.map(cutpoint => [command, cutpoint] as const)
}

export const CRASH_BOUNDARIES: readonly CrashBoundary[] = [
  {
    boundary: 'before capture',
    end: 'completed',
    moments: during(
      'authorize',
      'review-note.request.before',
      'review-note.request.after',
      'review-note.expected.after',
      'kernel.store_opened.after',
      'kernel.recovered.before',
      'kernel.call_preflighted.before',
      'kernel.call_preflighted.after',
      'kernel.call_reserved.before',
      'kernel.call_reserved.after',
      'review-note.reservation.receipt.after',
      'review-note.nonce.before',
      'review-note.nonce.after',
      'kernel.call_started.before',
    ),
  },
  {
    boundary: 'captured, unclaimed',
    end: 'completed',
    moments: [
      ...during(
        'authorize',
        'kernel.call_started.after',
        'kernel.call_authorized.before',
        'kernel.call_authorized.after',
        'review-note.authorization.before',
        'review-note.authorization.after',
      ),
      ...during('execute', 'executor.store_opened.after', 'executor.claim_recorded.before'),
    ],
  },
  {
    boundary: 'claimed, no report',
    end: 'unknown',
    moments: during(
      'execute',
      'executor.claim_recorded.after',
      'review-note.append.before',
      'review-note.append.written',
      'review-note.append.after',
      'executor.report_retained.before',
    ),
  },
  {
    boundary: 'report durable, reply lost',
    end: 'completed',
    moments: [
      ...during(
        'execute',
        'executor.report_retained.after',
        'review-note.report.before',
        'review-note.report.after',
      ),
      ...during('report', 'kernel.recovered.after', 'kernel.call_returned.before'),
    ],
  },
  {
    boundary: 'raw return durable',
    end: 'completed',
    moments: during(
      'report',
      'kernel.call_returned.after',
      'kernel.call_finished.before',
      'kernel.call_finished.after',
      'review-note.completed.receipt.before',
      'review-note.completed.receipt.after',
      'review-note.result.before',
      'review-note.result.after',
    ),
  },
]
