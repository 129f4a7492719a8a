// Owns how tests run: two files at once, and after all of them, one by one on an otherwise idle machine, the
// files named *.alone.test.ts (promises in milliseconds that a busy neighbour would break).
import { defineConfig } from 'vitest/config'
import { SummaryReporter } from './test/support/summary-reporter.js'

const full = process.env['CHIO_FULL'] === '1'
const shared = {
  pool: 'forks' as const,
  // A bound for what hangs, not a promise: a busy machine makes ten commands out of one's time.
  testTimeout: full ? 600_000 : 120_000,
  hookTimeout: 120_000,
}

export default defineConfig({
  test: {
    reporters: ['default', new SummaryReporter()],
    globalSetup: 'scripts/test/fresh-programs.mjs',
    projects: [
      {
        test: {
          ...shared,
          name: 'together',
          include: ['test/**/*.test.ts'],
          exclude: ['test/**/*.alone.test.ts'],
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...shared,
          name: 'alone',
          include: ['test/**/*.alone.test.ts'],
          maxWorkers: 1,
          fileParallelism: false,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
})
