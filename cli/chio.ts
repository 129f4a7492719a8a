#!/usr/bin/env node
// The first step of the command line: elsewhere than on Linux nothing of ours can be loaded, so that is said
// before anything is.
if (process.platform === 'linux') {
  const { runProgram } = await import('./program.js')
  await runProgram(process.argv)
} else {
  console.error(
    `chio: refused: expected Linux, got ${process.platform}\n      code unsupported_platform; nothing was started`,
  )
  process.exitCode = 1
}
