#!/usr/bin/env node
// review-note: each command is a process of its own that opens the original stores again.
// Source: the review-note example of caller delivery; docs/review-note.md.
import { reviewNote } from './commands.js'

await reviewNote(process.argv)
