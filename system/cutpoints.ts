// Owns how the moments are named at which a crash test ends a process: `broker.NAME.before` and `broker.NAME.after`
// around a commit; `.received` and `.answered` around a request that a peer sent; `.asked` and `.told` around one of
// our own; `broker.NAME` for a step in between.
// Must never: be reached from the environment or the command line; it is an argument of the start functions.

/** Called at every named moment. */
export type Cutpoint = (name: string) => void

/** Puts the process before each name, and the store's own words into the same form. */
export function cutpointsOf(
  process: 'broker' | 'executor' | 'kernel',
  atCutpoint: Cutpoint | undefined,
): Cutpoint {
  if (atCutpoint === undefined) return () => undefined
  return name =>
    atCutpoint(`${process}.${name.replace(':before_commit', '.before').replace(':after_commit', '.after')}`)
}
