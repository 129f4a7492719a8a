// Users by name or number, from the system's own files; and the caller keys that `init` gave them.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { BrokerError } from '../protocol/errors.js'
import { allowedEnvironment } from '../system/environment.js'
import type { Layout } from '../system/layout.js'

export interface SystemUser {
  readonly name: string
  readonly uid: number
  readonly gid: number
}

/** Finds a user by name or uid. @throws BrokerError `usage` when there is none. */
export function findUser(nameOrUid: string): SystemUser {
  const entry = lookUp('passwd', nameOrUid)
  if (entry === undefined)
    throw new BrokerError('usage', `user refused: expected one that exists, got ${nameOrUid}`)
  const [name, , uid, gid] = entry
  return { name: name as string, uid: Number(uid), gid: Number(gid) }
}

/** Each of them once: one that is named twice, or by name and by uid, is one user. */
export function findUsers(namesOrUids: readonly string[]): SystemUser[] {
  return [...new Map(namesOrUids.map(findUser).map(user => [user.uid, user])).values()]
}

/** The gid of a group, when there is one. */
export function findGroup(name: string): number | undefined {
  const entry = lookUp('group', name)
  return entry === undefined ? undefined : Number(entry[2])
}

/** getent also knows users of directories and containers, which /etc/passwd does not list. */
function lookUp(database: 'group' | 'passwd', key: string): string[] | undefined {
  try {
    return execFileSync('getent', [database, '--', key], {
      env: allowedEnvironment(),
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    })
      .trim()
      .split(':')
  } catch {
    return undefined
  }
}

/** The caller key of a client user, as the kernel's configuration has it. */
export function callerKeyOf(layout: Layout, uid: number): string {
  const config = JSON.parse(readFileSync(layout.kernel.config, 'utf8')) as {
    clients: { uid: number; callerPublicKey: string | null }[]
  }
  const key = config.clients.find(client => client.uid === uid)?.callerPublicKey
  if (key != null) return key
  throw new BrokerError(
    'usage',
    `client refused: uid ${uid} is no client of this installation: chio init --client USER names clients when one is made`,
  )
}
