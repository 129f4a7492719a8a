// The pages that fix the kernel's two sockets, compared with the code they describe.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { packageRoot } from '../../native/paths.js'
import { ERROR_CODES } from '../../protocol/error-codes.js'
import { ADMINISTRATIVE_OPERATIONS } from '../../protocol/kernel-rpc.js'
import { MAXIMUM_AUTHORITY_FRAME_BYTES } from '../../kernel/serving/authority-service.js'
import { HANDLED_KINDS } from '../../kernel/serving/operation-table.js'
import { authorityExamples, examplesOfPage, memberNames } from '../support/rpc-examples.js'

const page = (name: string): string => readFileSync(join(packageRoot(), 'docs', name), 'utf8')
const grouped = (value: number): string => value.toLocaleString('en-US')

describe('docs/authority-rpc.md', () => {
  const text = page('authority-rpc.md')

  test('shows every question and answer exactly as they are signed', () => {
    expect(Object.fromEntries(examplesOfPage(text))).toEqual(Object.fromEntries(authorityExamples()))
  })

  test('describes every member that occurs', () => {
    const members = new Set(
      [...authorityExamples().values()].flatMap(json => [...memberNames(JSON.parse(json))]),
    )
    const prose = text.replaceAll(/```json[\s\S]*?```/g, '')
    const missing = [...members].filter(name => !new RegExp(`[\`{, ]${name}[\`},]`).test(prose))
    expect(missing).toEqual([])
  })

  test('states the bound of a question', () => {
    expect(text).toContain(`at most ${grouped(MAXIMUM_AUTHORITY_FRAME_BYTES)} bytes`)
  })
})

describe('docs/kernel-rpc.md', () => {
  const text = page('kernel-rpc.md')

  test('has a row for every operation and says which need an administrator', () => {
    const rows = [...text.matchAll(/^\| `([a-z_]+)` \|/gm)].map(([, kind]) => kind)
    expect(HANDLED_KINDS.filter(kind => !rows.includes(kind))).toEqual([])
    for (const kind of ADMINISTRATIVE_OPERATIONS) expect(text).toMatch(new RegExp(`set for[^|]*\`${kind}\``))
  })

  test('names only refusals of the table, and every one that only the kernel makes', () => {
    const section = text.slice(text.indexOf('## Refusals'))
    const named = [...section.matchAll(/`([a-z_]+)`/g)].map(([, code]) => code as string)
    expect(named.filter(code => !Object.hasOwn(ERROR_CODES, code))).toEqual([])
    const own = Object.keys(ERROR_CODES).filter(code =>
      /^(grant_|operation_|execution_nonce_|request_binding)/.test(code),
    )
    expect(own.filter(code => !named.includes(code))).toEqual([])
  })
})
