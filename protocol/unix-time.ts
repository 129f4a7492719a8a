// Times on the wire: whole seconds or milliseconds since 1970, within the integers JSON keeps exactly.
import { integer } from './codec.js'
import { MAXIMUM_INTEGER } from './limits.js'

/** Unix time in seconds, 0 to 2^53−1. */
export const UnixSeconds = integer({ min: 0, max: MAXIMUM_INTEGER })
/** Unix time in seconds that is never 0. */
export const PositiveUnixSeconds = integer({ min: 1, max: MAXIMUM_INTEGER })
/** Unix time in milliseconds, 0 to 2^53−1. */
export const UnixMs = integer({ min: 0, max: MAXIMUM_INTEGER })
/** A count, index or epoch, 0 to 2^53−1. */
export const Count = integer({ min: 0, max: MAXIMUM_INTEGER })
