// Owns changes of JSON texts that keep most of their form: a member away, doubled, moved or renamed, a value
// replaced by one at a limit or from another document, another spelling of the same value.
import { jsonSpans, type Span } from './json-spans.js'
import { mutateBytes } from './mutate-bytes.js'
import type { Random } from './random.js'
import { CANARY } from './target.js'

const NUMBERS = ['0', '-0', '-1', '1', '1.0', '1e0', '01', '+1', '255', '256', '65536', '4294967296', '1e-7']
  .concat('9007199254740991', '9007199254740992', '-9007199254740993', '1e21', '1E21', '1e400', '5e-324')
  .concat('0.1', '123456789012345680000', '1e+21', '.5', '5.', '0x10', 'NaN', 'Infinity')
const STRINGS = [
  '""',
  '" "',
  '"\\u0000"',
  '"\\u001f"',
  '"\\n"',
  '"\\/"',
  '"\\u0041"',
  '"\\uD800"',
  '"\\udc00"',
]
  .concat('"\\ud83d\\ude00"', '"\ud83d\ude00"', '"\ufeff"', '"\u2028"', '"\u00e9"', '"e\u0301"', '"\u00a0a"')
  .concat('"__proto__"', '"constructor"', `"${CANARY}"`, `"${'x'.repeat(512)}"`, `"${'x'.repeat(513)}"`)
  .concat(`"${'a'.repeat(64)}"`, `"${'A'.repeat(64)}"`, `"${'0'.repeat(128)}"`, '"\x7f"', '"\t"', '"\\b\\f"')
const STRUCTURES = ['null', 'true', 'false', '[]', '{}', '[0]', '[256]', '[[]]', '{"":0}', '{"a":{}}']
  .concat(
    '['.repeat(63) + ']'.repeat(63),
    `${'['.repeat(64)}{}${']'.repeat(64)}`,
    '['.repeat(65) + ']'.repeat(65),
  )
  .concat(`${'{"a":'.repeat(64)}0${'}'.repeat(64)}`, `[${'7,'.repeat(300)}7]`, `{"captured":{}}`)
const KEYS = ['""', '"a"', '"__proto__"', '"schema"', '"kind"', '"\\u0061"', '"\ud83d\ude00"', '"\ufb33"']
const ALIKE = ['0123456789', 'abcdef', 'abcdefghijklmnopqrstuvwxyz', 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', ' -_.:/é']
const VALUES = [...NUMBERS, ...STRINGS, ...STRUCTURES]

type Change = (text: string, spans: readonly Span[], other: string, random: Random) => string

const CHANGES: readonly Change[] = [
  (text, spans, _other, random) => replaced(text, random.pick(spans), random.pick(VALUES)),
  (text, spans, _other, random) => replaced(text, spanOf(spans, random, 'value'), random.pick(VALUES)),
  (text, spans, other, random) => replaced(text, spanOf(spans, random, 'value'), partOf(other, random)),
  (text, spans, _other, random) => removed(text, random.pick(spans)),
  (text, spans, _other, random) => doubled(text, random.pick(spans)),
  (text, spans, _other, random) => swapped(text, random.pick(spans), random.pick(spans)),
  (text, spans, other, random) => inserted(text, spanOf(spans, random, 'member'), memberOf(other, random)),
  (text, spans, _other, random) => renamed(text, spanOf(spans, random, 'member'), random.pick(KEYS)),
  (text, spans, _other, random) => wrapped(text, spanOf(spans, random, 'value'), random),
  (text, spans, _other, random) => spaced(text, random.pick(spans), random.pick([' ', '\n', '\t', '\r\n'])),
  (text, spans, _other, random) => nudged(text, spanOf(spans, random, 'value'), random),
  (text, spans, _other, random) => nudged(text, spanOf(spans, random, 'value'), random),
  (text, spans, _other, random) => nudged(text, spanOf(spans, random, 'value'), random),
  (text, spans, _other, random) => respelled(text, random.pick(spans), random),
]

/** One to three changes of form, or of bytes; what is no JSON is changed as bytes. */
export function mutateJson(base: Uint8Array, other: Uint8Array, random: Random): Uint8Array {
  if (random.once(4)) return mutateBytes(base, other, random)
  let text = Buffer.from(base).toString('utf8')
  const otherText = Buffer.from(other).toString('utf8')
  const rounds = 1 + random.below(random.once(3) ? 3 : 1)
  for (let round = 0; round < rounds; round++) {
    const spans = jsonSpans(text)
    if (spans.length === 0) return mutateBytes(Buffer.from(text), other, random)
    text = random.pick(CHANGES)(text, spans, otherText, random)
  }
  return Buffer.from(text)
}

function spanOf(spans: readonly Span[], random: Random, kind: Span['kind']): Span {
  for (let tries = 0; tries < 8; tries++) {
    const span = random.pick(spans)
    if (span.kind === kind) return span
  }
  return random.pick(spans)
}

function replaced(text: string, { start, end }: Span, piece: string): string {
  return text.slice(0, start) + piece + text.slice(end)
}

/** With the comma before or behind it, so that what is left is well-formed. */
function removed(text: string, { start, end }: Span): string {
  if (text[end] === ',') return text.slice(0, start) + text.slice(end + 1)
  if (text[start - 1] === ',') return text.slice(0, start - 1) + text.slice(end)
  return text.slice(0, start) + text.slice(end)
}

function doubled(text: string, { start, end }: Span): string {
  return `${text.slice(0, end)},${text.slice(start)}`
}

function swapped(text: string, one: Span, another: Span): string {
  const [first, second] = one.start < another.start ? [one, another] : [another, one]
  if (first.end > second.start) return text
  const [a, b] = [text.slice(first.start, first.end), text.slice(second.start, second.end)]
  return text.slice(0, first.start) + b + text.slice(first.end, second.start) + a + text.slice(second.end)
}

function inserted(text: string, { end }: Span, member: string): string {
  return `${text.slice(0, end)},${member}${text.slice(end)}`
}

function renamed(text: string, { start, end }: Span, key: string): string {
  const colon = text.indexOf(':', start)
  return colon < 0 || colon > end ? text : text.slice(0, start) + key + text.slice(colon)
}

function wrapped(text: string, span: Span, random: Random): string {
  const inner = text.slice(span.start, span.end)
  return replaced(text, span, random.once(2) ? `[${inner}]` : `{"a":${inner}}`)
}

function spaced(text: string, { start, end }: Span, blank: string): string {
  return text.slice(0, start) + blank + text.slice(start, end) + blank + text.slice(end)
}

/** One character as an escape; a number with an exponent. */
function respelled(text: string, { start, end }: Span, random: Random): string {
  if (/[0-9]/.test(text[end - 1] ?? ''))
    return `${text.slice(0, end)}${random.pick(['e0', '.0', 'E+0'])}${text.slice(end)}`
  const at = start + 1 + random.below(end - start - 2)
  const code = text.charCodeAt(at).toString(16).padStart(4, '0')
  return `${text.slice(0, at)}\\u${code}${text.slice(at + 1)}`
}

/** Another value of the same form: one digit or letter in the place of another, one more, one less. */
function nudged(text: string, { start, end }: Span, random: Random): string {
  const at = start + random.below(end - start)
  const sign = text[at] ?? ''
  const alike = ALIKE.find(letters => letters.includes(sign))
  if (alike === undefined) return text
  const piece = random.once(8) ? random.pick(['', sign + sign]) : random.pick(alike.split(''))
  return text.slice(0, at) + piece + text.slice(at + 1)
}

function partOf(text: string, random: Random): string {
  const spans = jsonSpans(text)
  if (spans.length === 0) return 'null'
  const { start, end } = spanOf(spans, random, 'value')
  return text.slice(start, end)
}

function memberOf(text: string, random: Random): string {
  const spans = jsonSpans(text).filter(({ kind }) => kind === 'member')
  if (spans.length === 0) return '"zz":0'
  const { start, end } = random.pick(spans)
  return text.slice(start, end)
}
