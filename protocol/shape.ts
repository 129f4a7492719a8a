// Owns what the members of a configuration file must be: each shape reads one JSON value, already parsed strictly,
// and says by name what was expected where it is another. A codec reads wire bytes in one spelling; these files are
// written by people, so their order and spacing are free and every fault is told, not the first alone.
// Must never: fill in a member, ignore one, or repeat a value in a fault.

import { isList, type JsonValue } from './json.js'

export interface Fault {
  /** Members and places in lists, joined by dots; empty for the whole document. */
  readonly place: string
  /** Completes "expected ...". */
  readonly expected: string
}

/** Reads a value at a place. After a fault what it returns means nothing. */
export type Shape<T> = (value: JsonValue | undefined, place: string, faults: Fault[]) => T
export type Shaped<S> = S extends Shape<infer T> ? T : never

type Members = { readonly [name: string]: Shape<unknown> }
export type ShapedObject<M extends Members> = { readonly [K in keyof M]: Shaped<M[K]> }

/** What was read, or every fault of it. */
export type Reading<T> = { readonly value: T } | { readonly faults: readonly Fault[] }

export function readShape<T>(shape: Shape<T>, value: JsonValue): Reading<T> {
  const faults: Fault[] = []
  const read = shape(value, '', faults)
  return faults.length === 0 ? { value: read } : { faults }
}

/** One value that passes a check. */
export function valueOf<T extends JsonValue>(
  accepts: (value: JsonValue | undefined) => value is T,
  expected: string,
): Shape<T> {
  return (value, place, faults) => {
    if (!accepts(value)) faults.push({ place, expected })
    return value as T
  }
}

export function whole(minimum: number, maximum: number): Shape<number> {
  const isWithin = (value: JsonValue | undefined): value is number =>
    Number.isSafeInteger(value) && (value as number) >= minimum && (value as number) <= maximum
  return valueOf(isWithin, `a whole number from ${minimum} to ${maximum}`)
}

export function text(accepts: (value: string) => boolean, expected: string): Shape<string> {
  return valueOf((value): value is string => typeof value === 'string' && accepts(value), expected)
}

export function word<const W extends string>(...words: readonly W[]): Shape<W> {
  const isOne = (value: JsonValue | undefined): value is W => words.includes(value as W)
  return valueOf(isOne, words.join(' or '))
}

export function nullable<T>(shape: Shape<T>): Shape<T | null> {
  return (value, place, faults) => (value === null ? null : shape(value, place, faults))
}

/** @param expected what a list of another length is told, such as "one or more clients, at most 8". */
export function list<T>(
  item: Shape<T>,
  { expected, max, min = 0 }: { readonly min?: number; readonly max: number; readonly expected: string },
): Shape<readonly T[]> {
  return (value, place, faults) => {
    if (isList(value) && value.length >= min && value.length <= max) {
      return value.map((entry, at) => item(entry, below(place, String(at)), faults))
    }
    faults.push({ place, expected })
    return []
  }
}

/** Exactly these members. */
export function exactly<M extends Members>(members: M): Shape<ShapedObject<M>> {
  return (value, place, faults) => {
    const given = isRecord(value) ? value : undefined
    if (given === undefined) faults.push({ place, expected: 'an object' })
    // First: a misspelt member is one too many and one that is missing, and its name says which.
    const surplus = Object.keys(given ?? {}).filter(name => !Object.hasOwn(members, name))
    if (surplus.length > 0) {
      faults.push({ place, expected: `no member ${surplus.map(name => JSON.stringify(name)).join(', ')}` })
    }
    const read = Object.entries(members).map(([name, shape]) => {
      if (given === undefined) return [name, undefined] as const
      if (Object.hasOwn(given, name)) return [name, shape(given[name], below(place, name), faults)] as const
      return [name, absent(shape, below(place, name), faults)] as const
    })
    return Object.fromEntries(read) as ShapedObject<M>
  }
}

/** A member that is not there: most shapes have no value for it. */
function absent<T>(shape: Shape<T>, place: string, faults: Fault[]): T {
  const own: Fault[] = []
  const read = shape(undefined, place, own)
  if (own.length > 0) faults.push({ place, expected: 'it to be there' })
  return read
}

/** A condition that ties members together, told only where they are in order themselves. */
export function also<T>(
  shape: Shape<T>,
  holds: (value: T) => boolean,
  { at, expected }: { readonly at?: string; readonly expected: string },
): Shape<T> {
  return (value, place, faults) => {
    const before = faults.length
    const read = shape(value, place, faults)
    const isSound = faults.length === before
    if (isSound && !holds(read)) faults.push({ place: at === undefined ? place : below(place, at), expected })
    return read
  }
}

/** A text that becomes another type; a throw is the fault, in the words of the refusal. */
export function converted<T>(
  convert: (value: string) => T,
  sentenceOf: (error: unknown) => string,
): Shape<T> {
  return (value, place, faults) => {
    if (typeof value === 'string') {
      try {
        return convert(value)
      } catch (error) {
        faults.push({ place, expected: sentenceOf(error) })
      }
    } else faults.push({ place, expected: 'text' })
    return undefined as T
  }
}

function isRecord(value: JsonValue | undefined): value is { readonly [name: string]: JsonValue } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function below(place: string, name: string): string {
  return place === '' ? name : `${place}.${name}`
}
