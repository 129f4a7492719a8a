// Owns what the compiled command line says of itself: which commands there are, and which options each takes. A
// document that names another one is wrong. It runs `--help` only.
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { packageRoot } from '../../../native/paths.js'

interface CommandHelp {
  readonly commands: readonly string[]
  readonly options: readonly string[]
}

const known = new Map<string, CommandHelp>()

function helpOf(path: readonly string[]): CommandHelp {
  const name = path.join(' ')
  const remembered = known.get(name)
  if (remembered !== undefined) return remembered
  const program = join(packageRoot(), 'dist', 'cli', 'chio.js')
  const text = execFileSync(process.execPath, [program, ...path, '--help'], { encoding: 'utf8' })
  const help = {
    commands: [...sectionOf(text, 'Commands:').matchAll(/^ {2}(\S+)/gm)].map(match => match[1] ?? ''),
    options: [...sectionOf(text, 'Options:').matchAll(/^ {2}(?:-\w, )?(--[\w-]+)/gm)].map(
      match => match[1] ?? '',
    ),
  }
  known.set(name, help)
  return help
}

function sectionOf(text: string, title: string): string {
  const start = text.indexOf(`\n${title}\n`)
  if (start === -1) return ''
  const rest = text.slice(start + title.length + 2)
  const end = rest.indexOf('\n\n')
  return end === -1 ? rest : rest.slice(0, end)
}

/** What is wrong with one `chio …` line; undefined when the command line has all of it. */
export function faultOfCommand(line: string): string | undefined {
  const words = wordsOf(line)
  const path: string[] = []
  let help = helpOf(path)
  while (words[0] !== undefined && help.commands.includes(words[0])) {
    path.push(words.shift() as string)
    help = helpOf(path)
  }
  const [next] = words
  if (help.commands.length > 0 && next !== undefined && !next.startsWith('-'))
    return `"${line}": chio ${path.join(' ')} has no ${next}`
  const end = words.indexOf('--')
  const foreign = words
    .slice(0, end === -1 ? undefined : end)
    .map(word => word.split('=')[0] ?? '')
    .find(word => word.startsWith('--') && !help.options.includes(word))
  return foreign === undefined ? undefined : `"${line}": chio ${path.join(' ')} takes no ${foreign}`
}

/** The words behind `chio`, without redirections and what follows a pipe. */
function wordsOf(line: string): string[] {
  const command = line.split(' | ')[0] ?? ''
  const words = command.match(/"[^"]*"|'[^']*'|\S+/g) ?? []
  const redirection = words.findIndex(word => /^[<>]/.test(word))
  return words.slice(1, redirection === -1 ? undefined : redirection)
}
