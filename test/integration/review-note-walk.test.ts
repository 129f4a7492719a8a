// Walks docs/review-note.md as a reader would: every marked block, line by line in a shell, with what it has to print.
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { packageRoot } from '../../native/paths.js'
import { parsePage } from '../support/documents/markdown.js'
import { temporaryFolder } from '../support/temporary-folder.js'

const { fences } = parsePage(
  'docs/review-note.md',
  readFileSync(join(packageRoot(), 'docs', 'review-note.md'), 'utf8'),
)
const PROGRAMS = ['chio', 'review-note']

/** Each block with the lines that the page shows behind it. */
const blocks = fences.flatMap(({ language, marker, text }, index) => {
  const next = fences[index + 1]
  const shown = next?.language === 'text' ? next.text : null
  return language === 'bash' ? [{ name: marker.replace('walk: ', ''), shown, text }] : []
})

describe('the walk of the example', () => {
  const place = temporaryFolder('chio-review-walk-')
  beforeAll(() => {
    mkdirSync(join(place, 'bin'))
    for (const name of PROGRAMS) {
      const path = join(place, 'bin', name)
      const program = join(packageRoot(), 'dist', 'bin', `${name}.js`)
      writeFileSync(path, `#!/bin/sh\nexec '${process.execPath}' '${program}' "$@"\n`)
      chmodSync(path, 0o755)
    }
    mkdirSync(join(place, 'home'))
  })
  const statuses: (number | null)[] = []

  /** As it is typed: a line that fails ends nothing. */
  function type(line: string): string {
    const path = `${join(place, 'bin')}:${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`
    const { status, stdout } = spawnSync('/bin/sh', ['-c', line], {
      cwd: join(place, 'home'),
      encoding: 'utf8',
      env: { HOME: join(place, 'home'), LANG: 'C.UTF-8', PATH: path },
    })
    statuses.push(status)
    return stdout
  }

  test.each(blocks)('$name prints what the page shows', ({ shown, text }) => {
    const lines = text.replaceAll('\\\n', ' ').trim().split('\n')
    const said = lines.map(type).join('')
    if (shown === null) return
    const pattern = shown.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replaceAll('…', '[0-9a-f-]{36,64}')
    expect(said).toMatch(new RegExp(`^${pattern}$`))
  })

  afterAll(() => {
    // The one that says that its reply was dropped.
    expect(statuses.filter(status => status !== 0)).toEqual([75])
  })
})
