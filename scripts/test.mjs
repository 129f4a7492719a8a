// Owns what `npm test` does: set-up, lint, format, types, every test, and as the very last line the counts.
// It must never report success for a run that ran nothing, or that skipped without a stated reason.
import { runAllChecks } from './test/checks.mjs'

const full = process.argv.includes('--full') || process.env['CHIO_FULL'] === '1'
const outcome = await runAllChecks({ full })
for (const sentence of outcome.failures) process.stdout.write(`failed: ${sentence}\n`)
const skipped = outcome.skipped > 0 ? `, ${outcome.skipped} skipped` : ''
process.stdout.write(`${outcome.passed} passed, ${outcome.failed} failed${skipped}\n`)
process.exitCode = outcome.failed === 0 ? 0 : 1
