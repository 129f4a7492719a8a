// Every case that fuzzing once found is read again at every run, and the list of codecs is held against the folder.
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, test } from 'vitest'
import { CODECS, codecSamples, isCodec } from '../../selftest/fuzz/codec-catalogue.js'
import { keptCases } from '../../selftest/fuzz/corpus.js'
import { brokenPromise } from '../../selftest/fuzz/fuzz-run.js'
import { FUZZ_TARGETS, fuzzTarget } from '../../selftest/fuzz/targets.js'

afterAll(async () => {
  for (const target of FUZZ_TARGETS) await target.close?.()
})

describe('a found case', () => {
  test.each(keptCases().map(({ target, file, input }) => [target, file, input] as const))(
    '%s/%s breaks no promise any more',
    async (name, _file, input) => {
      const target = fuzzTarget(name)
      if (target === undefined) throw new Error(`no target is called ${name}`)
      expect(await brokenPromise(target, input)).toBeNull()
    },
  )
})

describe('the codec target', () => {
  const folder = fileURLToPath(new URL('../../protocol', import.meta.url))

  test('knows every codec that protocol/ exports', async () => {
    const exported = new Set<string>()
    for (const file of readdirSync(folder).filter(name => name.endsWith('.ts'))) {
      const module = (await import(`${folder}/${file}`)) as Record<string, unknown>
      for (const [name, value] of Object.entries(module)) if (isCodec(value)) exported.add(name)
    }
    expect([...CODECS.keys()].sort()).toEqual([...exported].sort())
  })

  test('has a valid text of every one of them', () => {
    expect([...codecSamples()].filter(([, texts]) => texts.length === 0).map(([name]) => name)).toEqual([])
  })
})
