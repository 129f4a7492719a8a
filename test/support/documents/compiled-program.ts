// Owns the programs that documents show: each compiles under the strictness of this project, against the declarations of
// the package, as a reader's own would. Must never: run one.
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from '../../../native/paths.js'
import { temporaryFolder } from '../temporary-folder.js'

/** @returns the JavaScript of the program. @throws Error with what the compiler says. */
export function compiledProgram(text: string): string {
  const folder = temporaryFolder('chio-program-')
  const modules = join(packageRoot(), 'node_modules')
  const configuration = {
    extends: join(packageRoot(), 'tsconfig.json'),
    compilerOptions: { noEmit: false, typeRoots: [join(modules, '@types')] },
    files: ['program.mts'],
    include: [],
    exclude: [],
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(configuration))
  writeFileSync(join(folder, 'program.mts'), text)
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(packageRoot(), join(folder, 'node_modules', 'chio-broker'))
  try {
    execFileSync(process.execPath, [join(modules, 'typescript', 'bin', 'tsc'), '-p', folder], {
      stdio: 'pipe',
    })
  } catch (error) {
    throw new Error(String((error as { stdout?: unknown }).stdout), { cause: error })
  }
  return readFileSync(join(folder, 'program.mjs'), 'utf8')
}
