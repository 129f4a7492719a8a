import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { firstStalePackage, nativePackagesLoad } from '../../scripts/setup/node-modules.mjs'

const A = { version: '1.0.0', integrity: 'sha512-a' }
const LOCKED = { '': { version: '0.1.0' }, 'node_modules/a': A, 'node_modules/o': { ...A, optional: true } }

function staleIn(locked: object, installed: object | undefined, present = ['a']): string | undefined {
  const root = mkdtempSync(join(tmpdir(), 'chio-modules-'))
  onTestFinished(() => rmSync(root, { recursive: true }))
  writeFileSync(join(root, 'package-lock.json'), JSON.stringify({ packages: locked }))
  for (const name of present) mkdirSync(join(root, 'node_modules', name), { recursive: true })
  for (const name of present) writeFileSync(join(root, 'node_modules', name, 'package.json'), '{}')
  const installedPath = join(root, 'node_modules/.package-lock.json')
  if (installed !== undefined) writeFileSync(installedPath, JSON.stringify({ packages: installed }))
  return firstStalePackage(root)
}

test('accepts what is installed as locked, without optional packages of other platforms', () => {
  expect(staleIn(LOCKED, { 'node_modules/a': A })).toBeUndefined()
})

test('leaves what somebody installed besides alone', () => {
  expect(staleIn(LOCKED, { 'node_modules/a': A, 'node_modules/own': A })).toBeUndefined()
})

test.each([
  ['nothing was installed', undefined, ['a']],
  ['a package is missing', {}, ['a']],
  ['a version differs', { 'node_modules/a': { ...A, version: '1.0.1' } }, ['a']],
  ['the bytes differ', { 'node_modules/a': { ...A, integrity: 'sha512-b' } }, ['a']],
  ['a folder was removed by hand', { 'node_modules/a': A }, []],
  [
    'an optional package is of another version',
    { 'node_modules/a': A, 'node_modules/o': { ...A, version: '2.0.0' } },
    ['a', 'o'],
  ],
])('installs again when %s', (_what, installed, present) => {
  expect(staleIn(LOCKED, installed, ['.', ...present])).toBeDefined()
})

test.each([
  ['better-sqlite3', 'better_sqlite3'],
  ['unix-dgram', 'unix_dgram'],
])('installs again when %s was not compiled', (name, part) => {
  const here = fileURLToPath(new URL('../..', import.meta.url))
  expect(nativePackagesLoad(here)).toBe(true)
  const root = mkdtempSync(join(tmpdir(), 'chio-modules-'))
  onTestFinished(() => rmSync(root, { recursive: true }))
  mkdirSync(join(root, 'node_modules'))
  writeFileSync(join(root, 'package.json'), '{}')
  for (const other of ['better-sqlite3', 'unix-dgram'])
    if (other !== name) symlinkSync(join(here, 'node_modules', other), join(root, 'node_modules', other))
  const release = join(root, 'node_modules', name, 'build', 'Release')
  mkdirSync(release, { recursive: true })
  writeFileSync(join(release, `${part}.node`), 'interrupted')
  expect(nativePackagesLoad(root)).toBe(false)
})
