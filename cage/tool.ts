/**
 * What an operator names as the tool, as a command that one exec can start. A script is run by its interpreter
 * directly, because a second exec (of the interpreter, of env) is what exec-once refuses.
 * Reads the first line of the named file; runs nothing.
 * Source: execve(2), interpreter scripts.
 */
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  openSync,
  readSync,
  realpathSync,
  statSync,
} from 'node:fs'
import { basename, isAbsolute, resolve } from 'node:path'
import { type BrokerError, isBrokerError } from '../protocol/errors.js'
import { readHostView } from './placement.js'
import { TOOL_FOLDER, givenTool, isInView } from './plan.js'
import type { FilterProfile, GivenFile, ToolCommand } from './policy.js'
import { refusedTool } from './refusal.js'

export interface ResolvedTool {
  readonly tool: ToolCommand
  /** A script from outside the view, given beside its interpreter. */
  readonly files: readonly GivenFile[]
  /** The profile that the interpreter needs. */
  readonly profile: FilterProfile
}

/** The PATH of the cage; the operator's own decides nothing. */
const SEARCH_FOLDERS = ['/usr/local/bin', '/usr/bin', '/bin', '/usr/sbin']

/** BINPRM_BUF_SIZE of the kernel. */
const FIRST_LINE_MAXIMUM_BYTES = 256

/** The first bytes of a program that the kernel loads itself. */
const ELF_MAGIC = '\x7fELF'

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

function searched(name: string): string | undefined {
  return SEARCH_FOLDERS.map(folder => `${folder}/${name}`).find(isProgram)
}

function pathOf(command: string): string {
  if (command.includes('/')) return resolve(command)
  const found = searched(command)
  if (found !== undefined) return found
  const isHere = existsSync(resolve(command))
  throw refusedTool(command, {
    expected: `a program in ${SEARCH_FOLDERS.join(', ')}`,
    got: isHere ? 'a file of the working folder' : 'none of that name',
    next: isHere ? `give its path: ./${command}` : 'give its path',
  })
}

/** Refuses what no exec could start, with what to do about it. */
function checkFile(path: string): void {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats === undefined) {
    throw refusedTool(path, { expected: 'a file', got: 'no such file', next: 'correct its path' })
  }
  if (!stats.isFile()) {
    const got = stats.isDirectory() ? 'a directory' : 'neither file nor directory'
    throw refusedTool(path, { expected: 'a file', got, next: 'give the path of the program itself' })
  }
  if (!isProgram(path)) {
    const next = `make it executable: chmod +x ${path}`
    throw refusedTool(path, { expected: 'a file that may be executed', got: 'one that may not', next })
  }
}

function firstLine(path: string): string {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const head = Buffer.alloc(FIRST_LINE_MAXIMUM_BYTES)
    const text = head.subarray(0, readSync(fd, head)).toString('latin1')
    return text.split('\n', 1)[0]!
  } finally {
    closeSync(fd)
  }
}

const MAXIMUM_SHOWN_CHARACTERS = 80

interface Interpreter {
  readonly path: string
  readonly argument: string | null
}

/** `#!/usr/bin/env NAME` names a program to be searched; otherwise interpreter and at most one argument. */
function interpreterOf(script: string, line: string): Interpreter {
  const [, named, argument] = /^#!\s*(\S+)(?:\s+(.*\S))?\s*$/.exec(line) ?? []
  if (named === undefined) throw badInterpreter(script, 'a #! line that names one', 'one that names none')
  const isEnv = basename(named) === 'env'
  if (isEnv && (argument === undefined || /[\s=]|^-/.test(argument))) {
    throw badInterpreter(script, 'a first line that names it plainly', 'env with options')
  }
  const path = isEnv ? searched(argument ?? '') : named
  if (path === undefined || !isInCage(path)) {
    throw badInterpreter(
      script,
      'one below /usr that is there',
      (path ?? argument ?? named).slice(0, MAXIMUM_SHOWN_CHARACTERS),
    )
  }
  if (!isProgram(path)) throw badInterpreter(script, 'a program', `none at ${path}`)
  return { path, argument: isEnv ? null : (argument ?? null) }
}

function isInCage(path: string): boolean {
  return isAbsolute(path) && isInView(path, { readOnly: [] }, readHostView())
}

function badInterpreter(script: string, expected: string, got: string): BrokerError {
  const next = 'correct its #! line'
  return refusedTool(script, { expected: `an interpreter: ${expected}`, got, next })
}

function profileOf(interpreter: string): FilterProfile {
  const name = basename(realpathSync(interpreter))
  if (name.startsWith('python')) return 'python'
  return name.startsWith('node') ? 'node' : 'native'
}

function scriptCommand(script: string, line: string, args: readonly string[]): ResolvedTool {
  const interpreter = interpreterOf(script, line)
  const given = isInView(script, { readOnly: [] }, readHostView()) ? null : givenTool(script)
  const options = interpreter.argument === null ? [] : [interpreter.argument]
  const argv = [interpreter.path, ...options, given?.at ?? script, ...args]
  return {
    tool: { path: interpreter.path, argv },
    files: given === null ? [] : [given],
    profile: profileOf(interpreter.path),
  }
}

function programCommand(path: string, args: readonly string[]): ResolvedTool {
  const argv0 = isInView(path, { readOnly: [] }, readHostView()) ? path : `${TOOL_FOLDER}/${basename(path)}`
  return { tool: { path, argv: [argv0, ...args] }, files: [], profile: profileOf(path) }
}

function resolved(path: string, args: readonly string[]): ResolvedTool {
  checkFile(path)
  const line = firstLine(path)
  if (line.startsWith('#!')) return scriptCommand(path, line, args)
  if (line.startsWith(ELF_MAGIC)) return programCommand(path, args)
  throw refusedTool(path, {
    expected: 'a script with a #! line or an ELF program',
    got: line === '' ? 'an empty first line' : 'neither',
    next: 'add a #! line, such as #!/bin/sh',
  })
}

/** @throws BrokerError tool_refused when the tool cannot be started because of what it is; nothing was done then. */
export function resolveTool(command: string, args: readonly string[] = []): ResolvedTool {
  const path = pathOf(command)
  try {
    return resolved(path, args)
  } catch (error) {
    if (isBrokerError(error)) throw error
    const { code = 'an unknown error' } = error as NodeJS.ErrnoException
    throw refusedTool(path, {
      expected: 'a file that can be read',
      got: code,
      next: 'check its path and mode',
    })
  }
}
