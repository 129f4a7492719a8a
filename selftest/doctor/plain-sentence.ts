// An error's sentence as the doctor tells it: without the prefix that says who refused, and without the referral
// to the doctor itself.
export function plainSentence(error: unknown): string {
  const sentence = error instanceof Error ? error.message : String(error)
  return sentence.replace(/^cage refused: /, '').replace(/; run chio doctor$/, '')
}
