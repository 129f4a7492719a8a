// The state table as a person reads it: test/golden/transitions.txt, made from `mayMove` and compared.
// To write it anew after a deliberate change: CHIO_WRITE_GOLDEN=1 npm run test:one -- test/protocol/transitions.test.ts
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { requirementFaults } from '../../protocol/admission-requirements.js'
import {
  ADMISSION_STATES,
  mayMove,
  OPERATION_KINDS,
  type OperationKind,
  type RequirementFlags,
} from '../../protocol/admission-states.js'

const PATH = join(import.meta.dirname, '..', 'golden', 'transitions.txt')
const FLAGS = ['approval', 'broker_attempt', 'budget_capture', 'execution_nonce'] as const
const NAME_WIDTH = Math.max(...ADMISSION_STATES.map(state => state.length)) + 2

const REQUIREMENT_SETS: RequirementFlags[] = Array.from({ length: 2 ** FLAGS.length }, (_, bits) => ({
  approval: (bits & 1) !== 0,
  broker_attempt: (bits & 2) !== 0,
  budget_capture: (bits & 4) !== 0,
  execution_nonce: (bits & 8) !== 0,
}))

function named(requirements: RequirementFlags): string {
  return FLAGS.filter(name => requirements[name]).join(' ') || 'nothing'
}

function movesOf(kind: OperationKind, requirements: RequirementFlags): string {
  return ADMISSION_STATES.map(from => {
    const targets = ADMISSION_STATES.filter(to => mayMove(kind, requirements, from, to))
    return targets.length === 0 ? '' : `  ${from.padEnd(NAME_WIDTH)}-> ${targets.join(', ')}\n`
  }).join('')
}

function blockOf(kind: OperationKind, requirements: RequirementFlags): string {
  const faults = requirementFaults(kind, requirements)
  const note = faults.length === 0 ? '' : `  (no operation has these: ${faults.join('; ')})`
  return `${kind}, requires ${named(requirements)}${note}\n${movesOf(kind, requirements)}\n`
}

function table(): string {
  const head = [
    'Every move that the state table permits: kind, requirements, from -> to. What is not here is refused.',
    'Compared with the code by test/protocol/transitions.test.ts, which also says how to write it anew.',
    '',
    '',
  ].join('\n')
  const blocks = OPERATION_KINDS.flatMap(kind =>
    REQUIREMENT_SETS.map(requirements => blockOf(kind, requirements)),
  )
  return `${head}${blocks.join('')}`.trimEnd().concat('\n')
}

describe('the golden table', () => {
  test('says exactly what the code permits, for every kind, requirement set, from and to', () => {
    const made = table()
    if (process.env['CHIO_WRITE_GOLDEN'] === '1') writeFileSync(PATH, made)
    expect(readFileSync(PATH, 'utf8')).toBe(made)
  })

  test('has a block for each of 48 kinds and sets, and no two permitted sets of one kind are left out', () => {
    const heads = readFileSync(PATH, 'utf8').match(/^\w+, requires .*$/gm) ?? []
    expect(new Set(heads).size).toBe(OPERATION_KINDS.length * REQUIREMENT_SETS.length)
  })

  test('an economic mutation moves the same way whatever is said to be required', () => {
    const moves = REQUIREMENT_SETS.map(requirements => movesOf('governed_economic_mutation', requirements))
    expect(new Set(moves).size).toBe(1)
  })
})
