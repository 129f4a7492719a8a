// Owns what the texts in a call's arguments are taken for: paths, and the hosts of addresses. A text that two programs
// could read differently is taken for something that nobody can judge, and never for something harmless.
// Must never: resolve a name, follow a path, or repair a text.
// Source: the capability token's path and domain constraints; RFC 3986 sections 3.2 and 6; RFC 1035 section 2.3.4.
import { isList, type JsonValue } from './json.js'

/** One text of the arguments, with the nearest member name above it. */
export interface TextLeaf {
  readonly key: string | null
  readonly value: string
}

/** Every text of a value, however deep. */
export function textLeaves(value: JsonValue, key: string | null = null): readonly TextLeaf[] {
  if (typeof value === 'string') return [{ key, value }]
  if (typeof value !== 'object' || value === null) return []
  if (isList(value)) return value.flatMap(item => textLeaves(item, key))
  return Object.entries(value).flatMap(([name, member]) => textLeaves(member, name))
}

const PATH_KEYS: ReadonlySet<string> = new Set(['file', 'filepath', 'dir', 'directory', 'root', 'cwd'])
const SEPARATOR = /[/\\]/

/** Whether a text names a file: by its member's name or by its look. */
export function isPathLike({ key, value }: TextLeaf): boolean {
  const name = key?.toLowerCase() ?? ''
  if (name.includes('path') || PATH_KEYS.has(name)) return true
  return SEPARATOR.test(value) && !value.includes('://')
}

/**
 * Whether a path lies under a prefix, segment by segment. A path that climbs (`..`) lies nowhere: what it climbs out of
 * may be a link. Nor does one with a byte that ends a name in C.
 */
export function isPathUnder(path: string, prefix: string): boolean {
  const given = segmentsOf(path)
  const wanted = segmentsOf(prefix)
  if (given === undefined || wanted === undefined || isAbsolute(path) !== isAbsolute(prefix)) return false
  return wanted.length <= given.length && wanted.every((segment, index) => segment === given[index])
}

function isAbsolute(path: string): boolean {
  return SEPARATOR.test(path.charAt(0))
}

function segmentsOf(path: string): readonly string[] | undefined {
  if (path.includes('\0')) return undefined
  const segments = path.split(SEPARATOR).filter(segment => segment !== '' && segment !== '.')
  return segments.includes('..') ? undefined : segments
}

/** A host name, lower case without a final dot; `unclear` where a text is an address that readers may read apart. */
export type Host = { readonly kind: 'host'; readonly name: string } | { readonly kind: 'none' | 'unclear' }

const NAME = /^(?=.{1,253}$)[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})+$/
const PORT = /^(?::[0-9]{1,5})?$/
const HOST_KEYS = new Set(['address', 'domain', 'endpoint', 'host', 'hostname', 'origin', 'uri', 'url'])
const FILE_LOOK = /^(?:\.{0,2}|~)\/(?!\/)/
const SCHEME = /^[A-Za-z][A-Za-z0-9+.-]*:\/\//

/** The host that a text addresses, if it addresses one. */
export function hostOf({ key, value: given }: TextLeaf): Host {
  const value = given.trim()
  const [authority = ''] = value.slice(SCHEME.exec(value)?.[0].length ?? 0).split(/[/?#]/)
  const name = nameOf(authority)
  const isAddress = HOST_KEYS.has(key?.toLowerCase() ?? '') || /^[/\\]{2}|:\/\//.test(value)
  if (name === undefined) return { kind: isAddress || looksLikeHost(value) ? 'unclear' : 'none' }
  // A backslash is a slash to browsers and part of a user's name to others; so is what stands before an @.
  return /[\\@\s]/.test(value) ? { kind: 'unclear' } : { kind: 'host', name }
}

/** One word with a dot, an @ or a letter that a name server would be asked for in another spelling. */
function looksLikeHost(value: string): boolean {
  return !/\s/.test(value) && !FILE_LOOK.test(value) && /[.@]|[^\u0000-\u007f]/.test(value)
}

function nameOf(authority: string): string | undefined {
  const [host = ''] = authority.split(':')
  if (!PORT.test(authority.slice(host.length))) return undefined
  const name = normalHost(host)
  return name === 'localhost' || NAME.test(name) ? name : undefined
}

/** Lower case, without a dot at either end. */
export function normalHost(name: string): string {
  return name.toLowerCase().replace(/^\.+|\.+$/g, '')
}

/** `*` stands for any characters, as often as it is given. No expression is compiled: a pattern cannot be made slow. */
export function matchesGlob(pattern: string, value: string): boolean {
  const [first = '', ...rest] = pattern.split('*')
  if (rest.length === 0) return pattern === value
  const last = rest.pop() ?? ''
  if (!value.startsWith(first) || !value.endsWith(last)) return false
  let at = first.length
  const end = value.length - last.length
  for (const part of rest) {
    const found = value.indexOf(part, at)
    if (found < 0 || found + part.length > end) return false
    at = found + part.length
  }
  return at <= end
}
