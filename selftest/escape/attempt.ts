// One way out that the hostile tool tries: what it is after, which wall stands there, and what the kernel may answer.
// A row is policy: it never changes by what a machine answered.
// Source: the errno names of errno(3), the signals of signal(7).
import type { ExecPolicy, FilterProfile } from '../../cage/index.js'

/**
 * filter: seccomp. namespace: of pids, users, mounts, IPC. view: nothing of it is mounted, or read-only. limit: a
 * resource limit or the size of a scratch folder. warden: process 1 may not be looked at. privilege: no capability.
 * kernel: Linux itself, for any process.
 */
export type Wall = 'filter' | 'kernel' | 'limit' | 'namespace' | 'privilege' | 'view' | 'warden'

/** A cage in which all attempts are made. */
export interface CageKind {
  readonly profile: FilterProfile
  readonly exec: ExecPolicy
}

/** Where the call is granted and leads nowhere. */
export interface Granted {
  readonly where: 'everywhere' | 'exec-allowed' | 'pairs'
  readonly answers: readonly string[]
  readonly because: string
}

export interface Attempt {
  readonly name: string
  readonly aim: string
  readonly wall: Wall
  /** Answers that are a refusal: errno or signal names. */
  readonly refusals: readonly string[]
  readonly granted?: Granted
  /** Not asked on another architecture. */
  readonly x64Only?: true
}

/** A row of the table: name, aim, and every answer that is a refusal. */
export function attempt(
  wall: Wall,
  name: string,
  aim: string,
  refusals: string | readonly string[] = 'EPERM',
): Attempt {
  return { name, aim, wall, refusals: [refusals].flat() }
}

/** The same, where the kernel says yes and it is no way out. */
export function harmless(
  row: Attempt,
  where: Granted['where'],
  because: string,
  answers: readonly string[] = ['ok'],
): Attempt {
  return { ...row, granted: { where, because, answers } }
}

function isGrantedIn({ where }: Granted, { exec, profile }: CageKind): boolean {
  if (where === 'everywhere') return true
  return where === 'pairs' ? profile !== 'native' : exec === 'allowed'
}

export type Verdict = 'confined' | 'open' | 'refused'

/** @returns `open` for anything but a refusal of the row, or an answer that the row grants in this cage. */
export function judgeAnswer({ granted, refusals }: Attempt, answer: string, kind: CageKind): Verdict {
  if (refusals.includes(answer)) return 'refused'
  if (granted === undefined || !granted.answers.includes(answer)) return 'open'
  return isGrantedIn(granted, kind) ? 'confined' : 'open'
}
