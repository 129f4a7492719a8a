// Owns the one body that every side of every row sends: an issue of some three hundred bytes, and how long the
// provider is to hold the request before it answers.
const TEXT = 'The same work on both sides: one issue, one request, one answer. '.repeat(4)

export function issueBody(holdMs = 0): Uint8Array {
  return Buffer.from(JSON.stringify({ title: 'bench', text: TEXT, holdMs }), 'utf8')
}
