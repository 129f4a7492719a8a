// Walks the page of caller delivery as a reader would, as an ordinary user: an installation, an executor, the routes of a
// real daemon, and the program of the page, which reserves, starts, acts and reports.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { packageRoot } from '../../native/paths.js'
import { compiledProgram } from '../support/documents/compiled-program.js'
import { parsePage } from '../support/documents/markdown.js'
import { Walk } from '../support/documents/walk.js'

const PAGE = 'docs/caller-delivery.md'
const page = parsePage(PAGE, readFileSync(join(packageRoot(), PAGE), 'utf8'))

function block(marker: string): string {
  const found = page.fences.find(fence => fence.marker === marker)
  if (found === undefined) throw new RangeError(`${PAGE} has no block marked "${marker}"`)
  return found.text
}

describe('the walk of caller delivery', { timeout: 120_000 }, () => {
  let walk: Walk
  beforeAll(async () => {
    walk = await Walk.begin()
  })
  afterAll(() => walk?.end())

  test('makes an installation, an executor and a token', async () => {
    const { code, output } = await walk.run(block('walk: prepare'))
    expect(output).toMatch(/^public key {3}[0-9a-f]{64}, epoch 1$/m)
    expect(code).toBe(0)
    configure(/^public key {3}([0-9a-f]{64})/m.exec(output)?.[1] ?? '')
  })

  function configure(publicKey: string): void {
    const path = join(walk.state, 'kernel', 'config.json')
    const added = block('kernel configuration').replaceAll('HOME', walk.home).replace('PUBLIC_KEY', publicKey)
    const config = JSON.parse(readFileSync(path, 'utf8')) as object
    writeFileSync(path, JSON.stringify({ ...config, ...(JSON.parse(added) as object) }))
  }

  test('serves', () => walk.serve(block('walk: serve')))

  test('delivers one call, as the page has the program and as its compiler leaves it', async () => {
    walk.write('deliver.mjs', block('compiled'))
    const shown = await walk.run(`node deliver.mjs '${walk.state}' 'first note'`)
    expect(shown).toEqual({ code: 0, output: 'reconciled {"written":true}\n' })
    walk.write('compiled.mjs', compiledProgram(block('compiled')))
    expect(await walk.run(`node compiled.mjs '${walk.state}' 'second note'`)).toEqual(shown)
  })

  test('leaves a note, an operation, a receipt and a claim of each', async () => {
    const { code, output } = await walk.run(block('walk: look'))
    expect(output).toMatch(/^[0-9a-f]{64} first note\n[0-9a-f]{64} second note\n/)
    expect(output).toContain('claims    2 of 64, in 1 segment')
    expect(output.match(/completed/g)?.length).toBeGreaterThanOrEqual(2)
    expect(code).toBe(0)
  })
})
