// Owns: whether anybody listens under a socket's name, without connecting: that would start the service of a manager
// that holds the socket for a daemon which does not run yet.
// Must never: be the reason to believe that a name is free: the kernel lists the sockets of one network namespace.
// Source: proc(5) /proc/net/unix; include/uapi/linux/net.h __SO_ACCEPTCON.
import { readFileSync } from 'node:fs'

/** Num RefCount Protocol Flags Type St Inode Path */
const LISTENING = /^\S+ \S+ \S+ 00010000 \S+ \S+ +\d+ (.+)$/

export function isListenedOn(path: string): boolean {
  let lines: string[]
  try {
    lines = readFileSync('/proc/net/unix', 'utf8').split('\n')
  } catch {
    return false
  }
  return lines.some(line => LISTENING.exec(line)?.[1] === path)
}
