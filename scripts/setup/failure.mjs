// Owns the one kind of error that the set-up answers with a sentence. Anything else is a fault of the set-up
// itself and keeps its stack trace.

export class SetupFailure extends Error {
  /** @override */
  name = 'SetupFailure'
}

/**
 * The sentence for an error, or undefined when it is a fault of the set-up itself.
 * @param {unknown} error
 * @returns {string | undefined}
 */
export function sentenceFor(error) {
  if (error instanceof SetupFailure) return error.message
  if (!(error instanceof Error) || !('code' in error) || !('path' in error)) return undefined
  if (error.code !== 'EACCES' && error.code !== 'EPERM' && error.code !== 'EROFS') return undefined
  return (
    `${String(error.path)} refuses to be written by uid ${process.getuid?.()} (${String(error.code)}): ` +
    'run this as the owner of the folder, or in a clone of your own'
  )
}
