// The mark of a document whose every check passed. It exists only in types: a function that acts
// takes `Verified<T>`, so that code which skips the check does not compile. Only the verify
// functions of this folder make one.
declare const verified: unique symbol

/** A document that passed all checks of its verify function (shape, signature, pins, clock). */
export type Verified<T> = T & { readonly [verified]: true }

/** Marks a document as verified; called at the end of a verify function and nowhere else. */
export function markVerified<T>(document: T): Verified<T> {
  return document as Verified<T>
}
