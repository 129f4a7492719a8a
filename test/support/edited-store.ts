// Owns what somebody does to a store whose kernel has ended: rows changed by another program, with every trigger taken
// away before and put back afterwards, so that the schema is as it was.
import { spawnSync } from 'node:child_process'

const PROGRAM = `
import sqlite3, sys
c = sqlite3.connect(sys.argv[1], isolation_level=None)
triggers = c.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
for name, _ in triggers: c.execute('DROP TRIGGER "%s"' % name)
c.execute('PRAGMA foreign_keys = OFF')
c.executescript(sys.argv[2])
for _, text in triggers: c.execute(text)
c.close()
`

export function editUnguarded(path: string, sql: string): void {
  const { status, stderr } = spawnSync('/usr/bin/python3', ['-c', PROGRAM, path, sql], { timeout: 10_000 })
  if (status !== 0) throw new Error(`edit failed: ${stderr.toString()}`)
}
