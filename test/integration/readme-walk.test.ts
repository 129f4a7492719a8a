// Walks the README as a reader would: every block that is marked, in its order, as an ordinary user; and compiles
// and runs its TypeScript program.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { packageRoot } from '../../native/paths.js'
import { compiledProgram } from '../support/documents/compiled-program.js'
import { type Fence, parsePage } from '../support/documents/markdown.js'
import { Walk } from '../support/documents/walk.js'

const page = parsePage('README.md', readFileSync(join(packageRoot(), 'README.md'), 'utf8'))

function fenceOf(marker: string): Fence {
  const found = page.fences.find(fence => fence.marker === marker)
  if (found === undefined) throw new RangeError(`README.md has no block marked "${marker}"`)
  return found
}

describe('the walk of the README', { timeout: 120_000 }, () => {
  let walk: Walk
  beforeAll(async () => {
    walk = await Walk.begin()
    for (const { marker, text } of page.fences) {
      if (marker.startsWith('file: ')) walk.write(marker.slice('file: '.length), text, 0o755)
    }
  })
  afterAll(() => walk?.end())

  test('makes an installation and says what a single user protects against', async () => {
    const { code, output } = await walk.run(fenceOf('walk: init').text)
    expect(output).toContain('not against other processes of this user')
    expect(code).toBe(0)
    walk.admitProvider()
  })

  test('serves', () => walk.serve(fenceOf('walk: up').text))

  test('stores the credential and lists it without its value', async () => {
    const { code, output } = await walk.run(fenceOf('walk: administer').text)
    expect(output).toContain('tracker version 1  provider example  bearer  enabled')
    expect(output).not.toContain('walk-token')
    expect(code).toBe(0)
  })

  test('grants one endpoint', async () => {
    const { code, output } = await walk.run(fenceOf('walk: grant').text)
    expect(output).toMatch(/^grant-[0-9a-f]+ {2}0 of 3 used\n {2}POST https:/m)
    expect(code).toBe(0)
  })

  test('shows the request without sending it', async () => {
    const { code, output } = await walk.run(fenceOf('walk: dry').text)
    expect(output).toContain('[credential tracker, bearer]')
    expect(output).toContain('Nothing was reserved, decrypted or sent.')
    expect(code).toBe(0)
    expect(walk.provider.requests).toBe(0)
  })

  test('sends it once, without a tool', async () => {
    const { code, output } = await walk.run(fenceOf('walk: run').text)
    expect(output).toContain('verified outcome: HTTP 201')
    expect(code).toBe(0)
    expect(walk.provider.issues.length).toBe(1)
  })

  test('sends it with the tools in shell and Python', async () => {
    const { code, output } = await walk.run(fenceOf('walk: tools').text)
    expect(output.match(/verified outcome: HTTP 201/g)).toHaveLength(2)
    expect(output).toMatch(/tool says \| the answer has \d{3,} bytes/)
    expect(output).toMatch(/tool says \| 201 \{/)
    expect(code).toBe(0)
    expect(walk.provider.issues.length).toBe(3)
  })

  test('runs the compiled program', async () => {
    const more = await walk.run(
      'chio capability issue --credential tracker --url https://api.example.com/issues --method POST',
    )
    walk.write('program.mjs', compiledProgram(fenceOf('compiled').text))
    const { code, output } = await walk.run(`node program.mjs '${walk.state}' '${more.output.trim()}'`)
    expect(output.trim()).toBe('201')
    expect(code).toBe(0)
  })

  test('shows how things stand and takes the grant back', async () => {
    const { code, output } = await walk.run(fenceOf('walk: status').text)
    expect(output).toContain('(single user)')
    expect(output).toContain('broker: revoked')
    expect(output).toContain('kernel: revoked')
    expect(code).toBe(0)
    expect(await walk.run(fenceOf('walk: run').text)).toMatchObject({ code: 1 })
  })
})
