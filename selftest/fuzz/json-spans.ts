// Owns where the parts of a JSON text stand, so that they can be cut, doubled, moved or replaced. Best effort
// on purpose: a text that is no JSON any more gives the parts up to the place where it stops being one.
// Must never be taken for a reader.

export interface Span {
  readonly kind: 'member' | 'value'
  readonly start: number
  readonly end: number
}

const DEEPEST = 200
const SCALAR = /"(?:[^"\\]|\\.)*"|[^\s,:{}[\]"]+/y

/** Parts of the text, in the order of their ends; at most so many. */
export function jsonSpans(text: string, maximum = 4_000): Span[] {
  const spans: Span[] = []
  new SpanWalk(text, spans, maximum).value(0, 0)
  return spans
}

class SpanWalk {
  readonly #text: string
  readonly #spans: Span[]
  readonly #maximum: number

  constructor(text: string, spans: Span[], maximum: number) {
    this.#text = text
    this.#spans = spans
    this.#maximum = maximum
  }

  /** @returns the offset behind the value, or -1 where none is read. */
  value(start: number, depth: number): number {
    if (depth > DEEPEST || this.#spans.length >= this.#maximum) return -1
    const opening = this.#text[start]
    const end =
      opening === '{' || opening === '['
        ? this.#items(start + 1, depth, opening === '{' ? '}' : ']')
        : this.#scalar(start)
    if (end >= 0) this.#spans.push({ kind: 'value', start, end })
    return end
  }

  #scalar(start: number): number {
    SCALAR.lastIndex = start
    const found = SCALAR.exec(this.#text)
    return found === null ? -1 : start + found[0].length
  }

  #items(first: number, depth: number, closing: string): number {
    let at = first
    if (this.#text[at] === closing) return at + 1
    for (;;) {
      const end = closing === '}' ? this.#member(at, depth) : this.value(at, depth + 1)
      if (end < 0) return -1
      if (this.#text[end] === closing) return end + 1
      if (this.#text[end] !== ',') return -1
      at = end + 1
    }
  }

  #member(start: number, depth: number): number {
    const colon = this.#scalar(start)
    if (colon < 0 || this.#text[colon] !== ':') return -1
    const end = this.value(colon + 1, depth + 1)
    if (end >= 0) this.#spans.push({ kind: 'member', start, end })
    return end
  }
}
