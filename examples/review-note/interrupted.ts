#!/usr/bin/env node
// review-note, ended at a named moment as by kill -9: the first argument names it.
// Must never: be anything that an operator runs; the exercise and the crash tests do.
import { reviewNote } from './commands.js'

const [node = '', program = '', cutpoint, ...args] = process.argv
await reviewNote([node, program, ...args], name => {
  if (name === cutpoint) process.kill(process.pid, 'SIGKILL')
})
