// Numeric ids that nothing on this machine uses: trials run their daemons and cages under ids of their
// own and create no users. The range is the one that service managers leave to transient ids.
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { randomInt } from 'node:crypto'
import { BrokerError } from '../protocol/errors.js'

/** Transient range of systemd's DynamicUser (systemd.exec(5)). */
const FIRST_ID = 61_184
const LAST_ID = 65_519

/**
 * Picks ids that are in neither passwd nor group and that no process runs under. Starts at a random place,
 * so that trials beside each other rarely meet.
 */
export function freeIds(count: number): number[] {
  const used = usedIds()
  const size = LAST_ID - FIRST_ID + 1
  const start = randomInt(size)
  const free: number[] = []
  for (let step = 0; step < size && free.length < count; step++) {
    const id = FIRST_ID + ((start + step) % size)
    if (!used.has(id)) free.push(id)
  }
  if (free.length < count) {
    throw new BrokerError(
      'custody',
      `trial refused: expected ${count} free ids from ${FIRST_ID} to ${LAST_ID}, got ${free.length}`,
    )
  }
  return free
}

function usedIds(): Set<number> {
  return new Set([...idsOf('/etc/passwd'), ...idsOf('/etc/group'), ...idsOfProcesses()])
}

function idsOf(path: string): number[] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .flatMap(line => line.split(':').slice(2, 4))
    .map(Number)
    .filter(Number.isInteger)
}

function idsOfProcesses(): number[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .flatMap(pid => {
      const stats = statSync(`/proc/${pid}`, { throwIfNoEntry: false })
      return stats === undefined ? [] : [stats.uid, stats.gid]
    })
}
