#!/usr/bin/env node
// The first step of the command line: elsewhere than on Linux, and with too few open files, nothing of ours can be
// loaded, so that is said before anything is.
import { LEAST_OPEN_FILES, openFilesLimit } from '../system/open-files.js'

const NEXT = 'mend what the sentence names and start again; nothing was started'

/** Why nothing can be loaded, with its code; null when it can. */
function obstacle(): { readonly sentence: string; readonly code: string } | null {
  if (process.platform !== 'linux')
    return { sentence: `expected Linux, got ${process.platform}`, code: 'unsupported_platform' }
  const limit = openFilesLimit()
  if (limit >= LEAST_OPEN_FILES) return null
  const sentence = `expected a hard limit of at least ${LEAST_OPEN_FILES} open files, got ${limit}; raise it: ulimit -n 1024`
  return { sentence, code: 'hostile_environment' }
}

const found = obstacle()
if (found === null) {
  const { runProgram } = await import('./program.js')
  await runProgram(process.argv)
} else {
  const { code, sentence } = found
  const document = {
    schema: 'chio.error.v1',
    code,
    sentence,
    outcome: 'not_started',
    operationId: null,
    receiptId: null,
  }
  // Not through the error table: nothing that could be loaded further is loaded here.
  console.error(
    process.argv.includes('--json')
      ? JSON.stringify({ ...document, next: NEXT })
      : `chio: refused: ${sentence}\n      code ${code}; outcome not started; next: ${NEXT}`,
  )
  process.exitCode = 1
}
