// Text for a person in 80 columns: a label, and what is said of it, broken between words. A word that is
// longer than a line, as a path, stays whole: it is there to be copied.
import { visible } from './output.js'

const WIDTH_COLUMNS = 80

/** Breaks a text between words into lines of at most so many columns. */
export function wrap(text: string, columns: number): string[] {
  const lines: string[] = []
  for (const word of visible(text.replace(/\s+/g, ' ')).trim().split(' ')) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + 1 + word.length <= columns)
      lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines
}

/** A label and its text beside it; further lines of the text stand below its first one. */
export function beside(label: string, text: string, labelColumns: number): string[] {
  return wrap(text, WIDTH_COLUMNS - labelColumns).map((line, index) =>
    `${(index === 0 ? label : '').padEnd(labelColumns)}${line}`.trimEnd(),
  )
}
