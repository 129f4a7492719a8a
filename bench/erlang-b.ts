// Owns the loss formula for any number of servers by its recursion, so that the measured check of one slot does not
// rest on the same line of code as the command that it checks.
// Source: Erlang (1917); B(0, a) = 1, B(n, a) = a·B(n−1, a) / (n + a·B(n−1, a)).

/** Share of arrivals that find every server busy. @param load arrivals a second times seconds held. */
export function erlangB(servers: number, load: number): number {
  let blocked = 1
  for (let server = 1; server <= servers; server++) blocked = (load * blocked) / (server + load * blocked)
  return blocked
}
