// Owns whose replay is being answered: one a uid at a time, from the moment its frame is made to the end of its
// connection. A frame may be 32 MiB, and whoever asks on many connections and reads none of them would have the
// broker make and hold one for each.
// Must never: let the replays of one uid wait for another's, or keep anything of a connection that ended.
import { ConnectionEnded } from '../system/connection-ended.js'
import type { FramedConnection } from '../system/framed-connection.js'

/** What a turn needs of a connection. */
export type Replaying = Pick<FramedConnection, 'ended' | 'ending'>

export class ReplayTurns {
  readonly #lastOf = new Map<number, Promise<unknown>>()

  /**
   * Makes an answer once every earlier replay of this uid is over: its answer made, its connection ended.
   * @throws ConnectionEnded when this connection ended first; nothing was made then.
   */
  async take<T>(uid: number, connection: Replaying, make: () => Promise<T>): Promise<T> {
    const before = this.#lastOf.get(uid) ?? Promise.resolve()
    let made: Promise<unknown> = Promise.resolve()
    const over = before.then(() => connection.ended).then(() => Promise.allSettled([made]))
    this.#lastOf.set(uid, over)
    void over.then(() => {
      if (this.#lastOf.get(uid) === over) this.#lastOf.delete(uid)
    })
    await Promise.race([before, connection.ended])
    assertThere(connection)
    const making = make()
    made = making
    return making
  }
}

/** @throws ConnectionEnded when nobody is there any more to take a replay. */
export function assertThere({ ending }: Pick<Replaying, 'ending'>): void {
  if (ending === undefined) return
  throw new ConnectionEnded(ending, `replay given up: its connection ended (${ending})`, 0)
}
