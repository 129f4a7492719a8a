// Owns: the part of unix-dgram that is used, loaded where it is needed: a daemon in the foreground seldom has use for it.
// Must never: be a way to anything but names of the file system; it cannot do abstract ones.
import { createRequire } from 'node:module'

export interface UnixDatagrams {
  createSocket(type: 'unix_dgram'): {
    /** Tells of its end in this very call, by `connect` or `error`. */
    connect(path: string): void
    on(event: 'error', listener: (error: NodeJS.ErrnoException) => void): void
    send(bytes: Buffer, offset: number, length: number, path: string, sent: (error?: Error) => void): void
    close(): void
  }
}

export function loadUnixDatagrams(): UnixDatagrams {
  return createRequire(import.meta.url)('unix-dgram') as UnixDatagrams
}
