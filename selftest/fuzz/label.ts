// Owns inputs that carry a word for the target before what is read: one line of text, a line feed, the rest.

const LINE_FEED = 0x0a
const LONGEST_LABEL = 80

export interface Labelled {
  readonly label: string
  readonly rest: Uint8Array
}

export function labelled(label: string, rest: Uint8Array | string): Uint8Array {
  return Buffer.concat([Buffer.from(`${label}\n`, 'latin1'), Buffer.from(rest as Uint8Array)])
}

/** What has no first line has an empty label. */
export function readLabel(input: Uint8Array): Labelled {
  const end = input.subarray(0, LONGEST_LABEL + 1).indexOf(LINE_FEED)
  if (end < 0) return { label: '', rest: input }
  return { label: Buffer.from(input.subarray(0, end)).toString('latin1'), rest: input.subarray(end + 1) }
}
