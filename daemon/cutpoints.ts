// Owns the names of the durable boundaries, at which a crash test ends the process: `broker.NAME.before` and
// `broker.NAME.after` around a commit, `broker.NAME` for a step in between.
// Must never: be reached from the environment or the command line; it is an argument of the start function.

export function cutpointNamed(atCutpoint: ((name: string) => void) | undefined): (name: string) => void {
  if (atCutpoint === undefined) return () => undefined
  return name =>
    atCutpoint(`broker.${name.replace(':before_commit', '.before').replace(':after_commit', '.after')}`)
}
