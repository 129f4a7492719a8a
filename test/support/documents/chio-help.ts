// Owns what the compiled command line says of itself: which commands there are, and which options each takes. A
// document that names another one is wrong. It runs `--help` only.
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { packageRoot } from '../../../native/paths.js'

interface CommandHelp {
  readonly commands: readonly string[]
  readonly options: readonly string[]
}

/** Asks every command for its help in one process: starting one for each would take its time on a busy machine. */
const ASK = `
const [program] = process.argv.slice(1)
process.execArgv = []
const texts = {}
const write = process.stdout.write.bind(process.stdout)
const ask = async path => {
  texts[path] = ''
  process.argv = ['node', 'chio', ...path.split(' ').filter(Boolean), '--help']
  process.stdout.write = text => (texts[path] += text)
  await import(program + '?' + encodeURIComponent(path))
  process.stdout.write = write
  const listed = texts[path].split('\\nCommands:\\n')[1]?.split('\\n\\n')[0] ?? ''
  for (const [, name] of listed.matchAll(/^ {2}([a-z]\\S*)/gm)) if (name !== 'help') await ask((path + ' ' + name).trim())
}
await ask('')
write(JSON.stringify(texts))
process.exitCode = 0
`

let texts: Readonly<Record<string, string>> | undefined

function helpOf(path: readonly string[]): CommandHelp {
  const text = (texts ??= readHelp())[path.join(' ')] ?? ''
  return {
    commands: [...sectionOf(text, 'Commands:').matchAll(/^ {2}([a-z]\S*)/gm)].map(match => match[1] ?? ''),
    options: [...sectionOf(text, 'Options:').matchAll(/^ {2}(?:-\w, )?(--[\w-]+)/gm)].map(
      match => match[1] ?? '',
    ),
  }
}

function readHelp(): Readonly<Record<string, string>> {
  const program = pathToFileURL(join(packageRoot(), 'dist', 'bin', 'chio.js')).href
  const answer = execFileSync(process.execPath, ['--input-type=module', '-e', ASK, program], {
    encoding: 'utf8',
  })
  return JSON.parse(answer) as Record<string, string>
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
