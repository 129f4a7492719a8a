// A configuration is read member by member: nothing is filled in or ignored, and every fault is told by its place.
import { describe, expect, test } from 'vitest'
import {
  also,
  converted,
  either,
  exactly,
  list,
  nullable,
  readShape,
  type Shape,
  text,
  whole,
  word,
} from '../../protocol/shape.js'
import type { JsonValue } from '../../protocol/json.js'

const faults = (shape: Shape<unknown>, value: JsonValue): string[] => {
  const read = readShape(shape, value)
  return 'faults' in read ? read.faults.map(({ expected, place }) => `${place}: ${expected}`) : []
}
const Person = exactly({ age: whole(0, 150), name: text(value => value !== '', 'a name') })

describe('an object', () => {
  test('is read with exactly its members', () => {
    expect(readShape(Person, { age: 150, name: 'x' })).toEqual({ value: { age: 150, name: 'x' } })
  })

  test('has every fault told, missing and surplus members among them', () => {
    expect(faults(Person, { age: 151, nam: 'x' })).toEqual([
      ': no member "nam"',
      'age: a whole number from 0 to 150',
      'name: it to be there',
    ])
    expect(faults(Person, [])).toEqual([': an object'])
    expect(faults(Person, null)).toEqual([': an object'])
  })

  test('takes no member from its prototype', () => {
    expect(faults(exactly({ toString: whole(0, 1) }), {})).toEqual(['toString: it to be there'])
  })
})

describe('one value', () => {
  test.each([0, 151, 1.5, '5', null, true, Number.MAX_SAFE_INTEGER + 1])('whole refuses %s', value => {
    expect(faults(whole(1, 150), value)).toHaveLength(1)
  })

  test('nullable takes null and what it holds, word one of its words', () => {
    expect(faults(nullable(word('a', 'b')), null)).toEqual([])
    expect(faults(nullable(word('a', 'b')), 'b')).toEqual([])
    expect(faults(nullable(word('a', 'b')), 'c')).toEqual([': a or b'])
  })

  test('converted tells what its conversion threw, and of other than text that it is none', () => {
    const shape = converted(
      value => {
        if (value === '') throw new Error('an empty one')
        return value.length
      },
      error => (error as Error).message,
    )
    expect(readShape(shape, 'four')).toEqual({ value: 4 })
    expect(faults(shape, '')).toEqual([': an empty one'])
    expect(faults(shape, 4)).toEqual([': text'])
  })
})

describe('a list', () => {
  const shape = list(Person, { min: 1, max: 2, expected: 'one or two' })
  const one = { age: 1, name: 'x' }

  test('is refused below and above its lengths, and where it is none', () => {
    expect(faults(shape, [one, one])).toEqual([])
    for (const value of [[], [one, one, one], { 0: one, length: 1 }, 'ab'])
      expect(faults(shape, value)).toEqual([': one or two'])
  })

  test('names the place of a fault inside it', () => {
    expect(faults(exactly({ all: shape }), { all: [one, { ...one, age: -1 }] })).toEqual([
      'all.1.age: a whole number from 0 to 150',
    ])
  })
})

test('what ties members together is told where they are in order themselves', () => {
  const pair = also(exactly({ a: whole(0, 9), b: whole(0, 9) }), ({ a, b }) => a < b, {
    at: 'b',
    expected: 'more than a',
  })
  expect(faults(pair, { a: 1, b: 2 })).toEqual([])
  expect(faults(pair, { a: 2, b: 2 })).toEqual(['b: more than a'])
  expect(faults(pair, { a: 2, b: 10 })).toEqual(['b: a whole number from 0 to 9'])
})

test('one of two objects is told apart by the member that one alone has', () => {
  const place = either('path', exactly({ path: word('a') }), exactly({ port: whole(1, 9) }))
  expect([faults(place, { path: 'a' }), faults(place, { port: 9 })]).toEqual([[], []])
  expect(faults(place, { path: 'a', port: 9 })).toEqual([': no member "port"'])
  expect(faults(place, {})).toEqual(['port: it to be there'])
  expect(faults(place, null)).toEqual([': an object'])
})
