// npm run crash as a user runs it: the table on the screen, one document with --json, and 2 for a wrong use.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { packageRoot } from '../../native/paths.js'

vi.setConfig({ testTimeout: 300_000 })

async function crash(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const program = join(packageRoot(), 'dist', 'cli', 'crash.js')
  const child = spawn(process.execPath, [program, ...args], { env: { PATH: process.env['PATH'] } })
  const said = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk: Buffer) => (said.stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (said.stderr += chunk.toString()))
  const [code] = (await once(child, 'close')) as [number]
  return { code, ...said }
}

describe('npm run crash', () => {
  test('is one document with --json', async () => {
    const { code, stdout } = await crash('--only', 'tool.half_written', '--json')
    expect(JSON.parse(stdout)).toEqual({
      schema: 'chio.crash-table.v1',
      rows: [
        {
          name: 'tool.half_written',
          who: 'tool',
          what: 'after 100 bytes of the frame',
          hits: 0,
          attempt: 'failed',
          operation: 'not_accepted_after_dispatch_commit',
          told: '1 not_started',
          isReached: true,
          ok: true,
          violations: [],
        },
      ],
      unlisted: [],
    })
    expect(code).toBe(0)
  })

  test.each([[['--only', 'no.such.moment']], [['--random', 'many']], [['--never']]])(
    'refuses %j as wrong use',
    async args => {
      const { code, stderr } = await crash(...args)
      expect(stderr).toMatch(/--only NAME/)
      expect(code).toBe(2)
    },
  )
})
