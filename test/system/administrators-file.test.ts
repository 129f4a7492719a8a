import {
  chmodSync,
  chownSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { readAdministratorsFile } from '../../system/administrators-file.js'
import { SKIP_REASONS } from '../support/skips.js'
import { testWhen } from '../support/when.js'

const isRoot = process.geteuid?.() === 0
let place: string
let pins: string

beforeEach(() => {
  place = realpathSync(mkdtempSync(join(tmpdir(), 'chio-pins-')))
  mkdirSync(join(place, 'state'), { mode: 0o711 })
  pins = join(place, 'state', 'pins.json')
  writeFileSync(pins, '{}', { mode: 0o644 })
})
afterEach(() => rmSync(place, { recursive: true, force: true }))

describe('a file of the administrator', () => {
  test('is read when only its owner can write it', () => {
    expect(Buffer.from(readAdministratorsFile(pins)).toString()).toBe('{}')
  })

  test.each([0o664, 0o646, 0o666])('of mode %o is refused', mode => {
    chmodSync(pins, mode)
    expect(() => readAdministratorsFile(pins)).toThrow(/no mode bit of 022/)
  })

  testWhen(isRoot, SKIP_REASONS.needsRoot, 'of another uid is refused', () => {
    chownSync(pins, 63_901, 63_901)
    expect(() => readAdministratorsFile(pins)).toThrow(/expected owner uid 0, got 63901/)
  })

  test('behind a link, or with a second name, is refused', () => {
    linkSync(pins, join(place, 'other'))
    expect(() => readAdministratorsFile(pins)).toThrow(/one link/)
    rmSync(pins)
    symlinkSync(join(place, 'other'), pins)
    expect(() => readAdministratorsFile(pins)).toThrow(/got a symbolic link/)
  })

  test('in a folder that others can write, or that a link leads to, is refused', () => {
    chmodSync(join(place, 'state'), 0o777)
    expect(() => readAdministratorsFile(pins)).toThrow(/no writing by others/)
    chmodSync(join(place, 'state'), 0o711)
    renameSync(join(place, 'state'), join(place, 'real'))
    symlinkSync(join(place, 'real'), join(place, 'state'))
    expect(() => readAdministratorsFile(pins)).toThrow(/without symbolic links/)
  })

  test('that is too large is refused', () => {
    writeFileSync(pins, Buffer.alloc(65_537))
    expect(() => readAdministratorsFile(pins)).toThrow(/at most 65536 bytes/)
  })
})
