// Owns a user namespace in which nobody may make another one: what a hardened machine allows, without changing this
// one. Root maps every id into it, so that only the limit differs; another user maps itself alone, and root's files
// belong to nobody there.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import type { Ended } from './chio.js'

/** A namespace limits what is made below it; the limit is written from inside. */
const FORBID = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
/** The second exec of root's own uid, mapped by then, is what gives the capability to write. */
const WAIT_FOR_MAP = `echo made; read mapped; exec sh -c '${FORBID}' sh "$@"`
const MAPPED_IDS = 70_000

/** Runs a command in such a namespace, as `uid` where root runs this, to its end. */
export async function runWhereForbidden(command: readonly string[], uid: number): Promise<Ended> {
  const isRoot = process.geteuid?.() === 0
  const asUser = ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', ...command]
  const bare = ['setpriv', '--inh-caps=-all', '--ambient-caps=-all', ...command]
  const args = isRoot
    ? ['--user', 'sh', '-c', WAIT_FOR_MAP, 'sh', ...asUser]
    : ['--user', '--map-current-user', '--keep-caps', 'sh', '-c', FORBID, 'sh', ...bare]
  const env = { PATH: process.env['PATH'] ?? '/usr/bin:/bin', HOME: '/nonexistent' }
  const child = spawn('unshare', args, { cwd: '/', env, stdio: 'pipe' })
  const said = { stdout: '', stderr: '' }
  child.stderr.on('data', (chunk: Buffer) => (said.stderr += chunk.toString()))
  child.stdin.on('error', () => undefined)
  const ended = once(child, 'close')
  if (isRoot) {
    await once(child.stdout, 'data')
    for (const map of ['uid_map', 'gid_map']) writeFileSync(`/proc/${child.pid}/${map}`, `0 0 ${MAPPED_IDS}`)
  }
  child.stdout.on('data', (chunk: Buffer) => (said.stdout += chunk.toString()))
  child.stdin.end('mapped\n')
  const [status, signal] = (await ended) as [number | null, string | null]
  return { status, signal, ...said }
}
