// The ways to another connection, to another use of descriptor 8, and to the launcher's terminal. Rows only.
// Source: native/cage-probe/sockets.c, stream.c and terminal.c, which make these attempts by these names.
import { attempt, type Attempt, harmless } from './attempt.js'

const SOCKETS: readonly Attempt[] = [
  attempt('filter', 'socket-every-family', 'a socket of each of 64 families, of five types'),
  harmless(
    attempt('filter', 'socketpair-stream', 'a stream pair'),
    'pairs',
    'Python and Node need it; it leads nowhere but to itself',
  ),
  attempt('filter', 'socketpair-datagram', 'a datagram pair, which could be connected elsewhere'),
  attempt('filter', 'socketpair-packet', 'a packet pair'),
  attempt('filter', 'socketpair-tipc', 'a pair of another family'),
  attempt('filter', 'socketpair-high-bits', 'a datagram pair, with bits that the kernel ignores'),
  attempt('filter', 'connect-8-broker', "descriptor 8 turned to the broker's socket"),
  attempt('filter', 'connect-8-abstract', 'descriptor 8 turned to an abstract name'),
  attempt('filter', 'connect-8-loopback', 'descriptor 8 turned to loopback'),
  attempt('filter', 'connect-pair-broker', "one of a stream pair turned to the broker's socket"),
  attempt('filter', 'bind-8', 'a name for descriptor 8'),
  attempt('filter', 'listen-8', 'connections accepted on descriptor 8'),
  attempt('filter', 'accept-8', 'a connection taken from descriptor 8'),
  attempt('filter', 'accept4-8', 'a connection taken from descriptor 8'),
  attempt('filter', 'io-uring-setup', 'a ring, which opens and connects past a filter'),
  attempt('filter', 'io-uring-enter', 'a ring that is there already'),
  attempt('filter', 'io-uring-register', 'a ring that is there already'),
  { ...attempt('filter', 'socket-i386', 'the call table of 32 bits', ['SIGSYS', 'SIGSEGV']), x64Only: true },
  { ...attempt('filter', 'socket-x32', 'the call table of x32', 'SIGSYS'), x64Only: true },
]

const STREAM: readonly Attempt[] = [
  attempt('filter', 'setsockopt-8-every-option', 'each of 99 socket options but the two timeouts'),
  attempt('filter', 'getsockopt-8-peer-pidfd', 'a handle on the broker'),
  attempt('filter', 'getsockopt-8-peer-groups', "the broker's groups"),
  attempt('filter', 'getsockopt-8-peer-security', "the broker's security label"),
  attempt('filter', 'getsockopt-8-network-cookie', "the host's network namespace by its number"),
  attempt('filter', 'ioctl-8-host-interfaces', "the host's network interfaces"),
  attempt('filter', 'ioctl-8-hardware-address', "an interface's hardware address"),
  attempt('filter', 'ioctl-8-network-namespace', "a descriptor of the host's network namespace"),
  attempt('filter', 'ioctl-8-bound-file', 'a descriptor of the file that the socket is bound to'),
  attempt('filter', 'ioctl-8-set-owner', 'signals of descriptor 8 sent to a process outside'),
  attempt('filter', 'ioctl-8-set-group', 'the same, to a group'),
  attempt('filter', 'ioctl-8-asynchronous', 'signals on arrival'),
  attempt('namespace', 'fcntl-8-set-owner', 'signals of descriptor 8 sent to a process outside', 'ESRCH'),
  attempt('namespace', 'fcntl-8-set-owner-extended', 'the same by the extended call', 'ESRCH'),
  attempt('filter', 'send-8-urgent', 'urgent data on the stream'),
  attempt('filter', 'sendmsg-8-urgent', 'urgent data on the stream'),
  attempt('filter', 'sendmmsg-8-urgent', 'urgent data on the stream'),
  attempt('filter', 'send-8-urgent-high-bits', 'urgent data, with bits that the kernel ignores'),
  attempt('filter', 'recv-8-urgent', 'urgent data from the stream'),
  attempt('kernel', 'sendto-8-elsewhere', "bytes to the broker's socket by name", ['EISCONN', 'EOPNOTSUPP']),
  attempt('filter', 'send-1', 'a socket call on the output'),
  attempt('filter', 'send-1-high-bits', 'a socket call on the output, with bits that the kernel ignores'),
  attempt('filter', 'shutdown-1', 'a socket call on the output'),
  attempt('kernel', 'reopen-8', 'the stream opened once more through /proc/self/fd', 'ENXIO'),
]

const TERMINAL: readonly Attempt[] = [
  attempt('filter', 'tiocsti', "words typed into the launcher's terminal"),
  attempt('filter', 'tiocsti-high-bits', 'the same with 2^32 added to the request'),
  attempt('filter', 'tioclinux', "the console's selection pasted"),
  attempt('filter', 'tioclinux-high-bits', 'the same with 7 times 2^32 added'),
  attempt('filter', 'tiocsctty', 'a controlling terminal'),
  attempt('filter', 'tiocsetd', 'another line discipline'),
  attempt('filter', 'tioccons', "the console's output"),
  attempt('view', 'dev-tty', 'the controlling terminal', ['ENOENT', 'ENXIO']),
  attempt('view', 'dev-console', 'the console', 'ENOENT'),
  attempt('view', 'dev-tty0', 'the screen', 'ENOENT'),
  attempt('view', 'dev-ptmx', 'a new terminal', 'ENOENT'),
]

export const CONNECTION_ATTEMPTS: readonly Attempt[] = [...SOCKETS, ...STREAM, ...TERMINAL]
