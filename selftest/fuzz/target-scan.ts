// Owns the fuzzing of the search for a reflected credential: written in any known form, behind and before anything,
// it is found; in a text that was made without it, it is found only where the very bytes stand.
import { SecretScan } from '../../daemon/provider/secret-scan.js'
import { labelled, readLabel } from './label.js'
import { mutateBytes } from './mutate-bytes.js'
import { Random, seedOf } from './random.js'
import { REFLECTIONS, type Reflection } from './reflections.js'
import { accepted, FuzzFinding, type FuzzTarget, type Verdict } from './target.js'

const VISIBLE = Array.from({ length: 94 }, (_unused, at) => 0x21 + at)
const APART = Buffer.from('|')
const SURROUNDINGS = [
  '',
  '{"echo":"',
  '%41\\u0042&amp;',
  'Bearer ',
  '\0\0a\0',
  'QUJD',
  '%25',
  '\\\\',
  '&amp;#',
  '\r\n',
]

export const scanTarget: FuzzTarget = {
  name: 'scan',
  reads: 'answers that may hold the credential',
  maximumInputBytes: 4_096,
  seeds: () =>
    [...REFLECTIONS.keys()].flatMap(form =>
      SURROUNDINGS.map(text => labelled(form, Buffer.from(text, 'latin1'))),
    ),
  mutate(base, other, random) {
    const { label, rest } = readLabel(base)
    const form = random.once(4) ? random.pick([...REFLECTIONS.keys()]) : label
    return labelled(form, mutateBytes(rest, readLabel(other).rest, random))
  },
  check: checkScan,
}

function checkScan(input: Uint8Array): Verdict {
  const { label, rest } = readLabel(input)
  const reflect = REFLECTIONS.get(label)
  if (reflect === undefined) return { word: 'no form', signal: 'no form' }
  const random = new Random(seedOf(input))
  const secret = Buffer.from(Array.from({ length: 14 + random.below(50) }, () => random.pick(VISIBLE)))
  const scan = new SecretScan(secret, { kind: 'bearer_authorization' })
  try {
    assertFound(scan, { label, reflect, secret, around: Buffer.from(rest) }, random)
    const form = scan.find(rest)
    if (form !== null) throw new FuzzFinding(`${form} was found where no secret is`)
    return accepted(`${label} ${rest.length >> 6}`)
  } finally {
    scan.wipe()
  }
}

interface Hidden {
  readonly label: string
  readonly reflect: Reflection
  readonly secret: Buffer
  readonly around: Buffer
}

function assertFound(scan: SecretScan, { label, reflect, secret, around }: Hidden, random: Random): void {
  const cut = random.below(around.length + 1)
  // Apart, since a percent sign before it would make an escape of its first letters: another text altogether.
  const hidden = [APART, reflect(secret, random), APART]
  const text = Buffer.concat([around.subarray(0, cut), ...hidden, around.subarray(cut)])
  if (scan.find(text) === null) throw new FuzzFinding(`a secret in ${label} was not found`)
}
