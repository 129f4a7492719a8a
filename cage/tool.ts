/**
 * What an operator names as the tool, as a command that one exec can start. A script is run by its interpreter
 * directly, because a second exec (of the interpreter, of env) is what exec-once refuses.
 * Reads the first line of the named file; runs nothing.
 * Source: execve(2), interpreter scripts.
 */
import { accessSync, closeSync, constants, openSync, readSync, realpathSync, statSync } from 'node:fs'
import { basename, isAbsolute, resolve } from 'node:path'
import { readHostView } from './placement.js'
import { TOOL_FOLDER, givenTool, isInView } from './plan.js'
import type { FilterProfile, GivenFile, ToolCommand } from './policy.js'
import { refusedBy, refusedCheck } from './refusal.js'

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

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

function findProgram(name: string): string {
  if (name.includes('/')) return resolve(name)
  const found = SEARCH_FOLDERS.map(folder => `${folder}/${name}`).find(isProgram)
  if (found === undefined)
    throw refusedCheck('tool', `a program in ${SEARCH_FOLDERS.join(', ')}`, 'none of that name')
  return found
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

/** `#!/usr/bin/env NAME` names a program to be searched; otherwise interpreter and at most one argument. */
function interpreterOf(line: string): { path: string; argument: string | null } | null {
  const match = /^#!\s*(\S+)(?:\s+(.*\S))?\s*$/.exec(line)
  if (match === null) return null
  const [, interpreter = '', argument] = match
  if (basename(interpreter) !== 'env') return { path: interpreter, argument: argument ?? null }
  if (argument === undefined || /[\s=]|^-/.test(argument)) {
    throw refusedCheck('tool', 'a script whose first line names its interpreter plainly', 'env with options')
  }
  return { path: findProgram(argument), argument: null }
}

function profileOf(interpreter: string): FilterProfile {
  const name = basename(realpathSync(interpreter))
  if (name.startsWith('python')) return 'python'
  return name.startsWith('node') ? 'node' : 'native'
}

function scriptCommand(script: string, line: string, args: readonly string[]): ResolvedTool {
  const interpreter = interpreterOf(line)!
  const view = readHostView()
  if (!isAbsolute(interpreter.path) || !isInView(interpreter.path, { readOnly: [] }, view)) {
    throw refusedCheck('tool', 'an interpreter below /usr', 'one from elsewhere')
  }
  const given = isInView(script, { readOnly: [] }, view) ? null : givenTool(script)
  const options = interpreter.argument === null ? [] : [interpreter.argument]
  const argv = [interpreter.path, ...options, given?.at ?? script, ...args]
  return {
    tool: { path: interpreter.path, argv },
    files: given === null ? [] : [given],
    profile: profileOf(interpreter.path),
  }
}

/** @throws CageRefusal when there is no such file, or its interpreter is not in the cage's view. */
export function resolveTool(command: string, args: readonly string[] = []): ResolvedTool {
  try {
    const path = findProgram(command)
    const line = firstLine(path)
    if (line.startsWith('#!')) return scriptCommand(path, line, args)
    const argv0 = isInView(path, { readOnly: [] }, readHostView()) ? path : `${TOOL_FOLDER}/${basename(path)}`
    return { tool: { path, argv: [argv0, ...args] }, files: [], profile: profileOf(path) }
  } catch (error) {
    throw refusedBy(error, 'tool')
  }
}
