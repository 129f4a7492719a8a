// Owns reading unit files in a test: sections, directives in their order, and the comment that stands over each.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from '../../native/paths.js'

export const SYSTEMD = join(packageRoot(), 'systemd')
export const UNIT_NAMES = readdirSync(SYSTEMD).filter(name => /\.(service|socket)$/.test(name))

export interface Directive {
  readonly section: string
  readonly name: string
  readonly value: string
  /** Of the paragraph that it stands in; empty without one. */
  readonly comment: string
}

export function unitText(name: string): string {
  return readFileSync(join(SYSTEMD, name), 'utf8')
}

export function directivesOf(text: string): Directive[] {
  const directives: Directive[] = []
  let [section, comment, wasDirective] = ['', '', false]
  for (const line of text.split('\n')) {
    if (line.startsWith('#')) {
      comment = wasDirective ? line : `${comment}\n${line}`
      wasDirective = false
    } else if (line.startsWith('[')) {
      section = line.slice(1, -1)
      comment = ''
    } else if (line === '') {
      comment = ''
    } else {
      const [name = '', ...rest] = line.split('=')
      directives.push({ section, name, value: rest.join('='), comment })
      wasDirective = true
    }
  }
  return directives
}

/** Every value of a directive, in its order. */
export function valuesOf(text: string, name: string): string[] {
  return directivesOf(text)
    .filter(directive => directive.name === name)
    .map(({ value }) => value)
}
