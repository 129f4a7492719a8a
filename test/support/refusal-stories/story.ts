// Owns what one refusal story is: how a real peer brings a running broker to one row of the refusal table.
import type { BrokerWorld, WorldOptions } from '../broker-world.js'
import type { Seen } from '../raw-broker.js'
import type { TestAttempt } from '../test-attempt.js'

export interface StoryEnd {
  /** What the peer saw; undefined where nobody looks any more. */
  readonly seen?: Seen
  /** Whose record must say the reason, where the row ends an attempt. */
  readonly attempt?: TestAttempt
  /** Decryptions that the story itself needed. */
  readonly decryptions?: number
}

export interface Story {
  readonly world?: WorldOptions
  tell(world: BrokerWorld): Promise<StoryEnd>
}

export type Stories = Readonly<Record<string, Story>>

export const story = (tell: Story['tell'], world?: WorldOptions): Story =>
  world === undefined ? { tell } : { tell, world }
