// The ways to the kernel and the machine, to files, to another program, and to more than its share. Rows only.
// Source: native/cage-probe/machine.c, files.c, exec.c and resources.c, which make these attempts by these names.
import { attempt, type Attempt, harmless } from './attempt.js'

const refusedCalls = (names: readonly string[], aim: string): Attempt[] =>
  names.map(name => attempt('filter', name, aim))

const MACHINE: readonly Attempt[] = [
  ...refusedCalls(
    ['bpf', 'perf-event-open', 'userfaultfd', 'fanotify-init'],
    'programs and watchers in the kernel',
  ),
  ...refusedCalls(['kexec-load', 'kexec-file-load', 'reboot'], 'another kernel'),
  ...refusedCalls(['init-module', 'finit-module', 'delete-module'], 'modules of the kernel'),
  ...refusedCalls(
    ['quotactl', 'quotactl-fd', 'acct', 'swapon', 'swapoff'],
    'accounts and swap of the machine',
  ),
  ...refusedCalls(['settimeofday', 'clock-settime', 'adjtimex', 'clock-adjtime'], 'the clocks'),
  ...refusedCalls(['sethostname', 'setdomainname', 'syslog', 'vhangup'], 'names, log and terminals'),
  ...refusedCalls(['move-pages', 'migrate-pages', 'mbind', 'lookup-dcookie'], "others' pages"),
  ...refusedCalls(
    ['seccomp-filter', 'seccomp-listener', 'prctl-seccomp'],
    'a filter of its own over this one',
  ),
  attempt('filter', 'lsm-set-self-attr', 'another security label'),
  attempt('filter', 'call-after-the-last', 'a call that is younger than the filter', 'ENOSYS'),
  attempt('filter', 'call-999', 'a call that is not there', 'ENOSYS'),
  attempt('filter', 'call-negative', 'a number of another call table', ['SIGSYS', 'ENOSYS']),
  attempt('filter', 'memfd-create', 'memory as a file, without a limit', 'ENOSYS'),
  attempt('filter', 'memfd-secret', 'memory out of the kernel', 'ENOSYS'),
  attempt('filter', 'personality', 'addresses that are known, pages that may all be executed'),
  attempt('privilege', 'prctl-mm', 'its own memory map rewritten'),
  ...refusedCalls(
    ['sysv-shared-memory', 'sysv-semaphores', 'sysv-messages', 'mqueue'],
    'memory and queues without a limit',
  ),
  attempt('filter', 'inotify-usr', 'which programs others start', 'ENOSYS'),
  attempt('filter', 'cachestat', 'which files others read', 'ENOSYS'),
  attempt('filter', 'io-setup', "the machine's one counter of asynchronous I/O"),
  ...refusedCalls(['sync', 'syncfs'], 'every disk of the machine kept busy'),
  ...refusedCalls(['iopl', 'ioperm', 'modify-ldt', 'uselib'], 'ports and tables of the processor').map(
    (row): Attempt => ({ ...row, x64Only: true }),
  ),
]

const READ_ONLY = ['EROFS', 'EACCES', 'EPERM', 'ENOENT', 'ENOTDIR'] as const

const FILES: readonly Attempt[] = [
  attempt(
    'view',
    'create-outside-scratch',
    'a file outside of the scratch folders, at eleven places',
    READ_ONLY,
  ),
  attempt('view', 'write-kernel-settings', 'settings of the kernel, ten of them', READ_ONLY),
  attempt('view', 'read-secrets', 'users, homes, keys, sockets: nineteen places', [
    'ENOENT',
    'EACCES',
    'EPERM',
  ]),
  attempt('view', 'open-devices', 'eighteen devices', ['ENOENT', 'EACCES']),
  attempt('privilege', 'make-device', 'a device of its own'),
  attempt('view', 'broker-path', "the broker's socket by its path", ['ENOENT', 'EACCES']),
  attempt('view', 'climb-above-root', 'a path above the root', 'ENOENT'),
  attempt('view', 'overwrite-self', 'the file that it was started from', ['EROFS', 'ETXTBSY', 'EACCES']),
  // Where the tool's user owns the file, the kernel says that it is being run before it says that the view is read-only.
  attempt('view', 'overwrite-helper', "the launcher's helper", ['EROFS', 'ETXTBSY', 'EACCES']),
  attempt('view', 'chmod-helper', "the mode of the launcher's helper", ['EROFS', 'EPERM']),
  attempt('view', 'chmod-usr', 'the mode of a program', ['EROFS', 'EPERM']),
  attempt('privilege', 'chown-root', 'a file given to root', ['EINVAL', 'EPERM']),
  attempt('view', 'link-helper', 'a second name for the helper', ['EXDEV', 'EPERM', 'EROFS']),
  attempt('view', 'xattr-helper', 'a mark on the helper', ['EROFS', 'EPERM', 'EACCES']),
  attempt('privilege', 'xattr-capability', 'capabilities on a file', [
    'EINVAL',
    'EPERM',
    'ENOTSUP',
    'EOPNOTSUPP',
  ]),
  attempt('filter', 'lease-helper', 'a delay for whoever writes the helper'),
  attempt('filter', 'notify-usr', 'which programs others start'),
  attempt('view', 'write-request', 'the request file, written', 'EACCES'),
  attempt('view', 'reopen-request', 'the request file, opened once more through /proc/self/fd', 'EACCES'),
  harmless(
    attempt('view', 'replace-request', 'the request file made writable and cut'),
    'everywhere',
    'its own copy: the broker compares what arrives with what was admitted',
  ),
]

const WALLED = 'exec is allowed, and every wall went along'
const SYSTEM = 'exec is allowed: a program of /usr, behind the same walls'

const another = (name: string, aim: string, refusals: string | readonly string[] = 'EPERM'): Attempt =>
  harmless(attempt('filter', name, aim, refusals), 'exec-allowed', WALLED, ['walled'])

/** Where exec is allowed nothing is at 255. */
const SLOT = ['EPERM', 'ENOSYS', 'EBADF'] as const

const PROGRAMS: readonly Attempt[] = [
  another('execve-self', 'itself once more'),
  harmless(attempt('filter', 'execve-usr', 'a program of /usr'), 'exec-allowed', SYSTEM),
  harmless(
    attempt('filter', 'execve-loader', 'a program of /usr through the loader'),
    'exec-allowed',
    SYSTEM,
  ),
  another('execveat-path', 'itself by path'),
  another('execveat-descriptor', 'itself by descriptor'),
  attempt('filter', 'execveat-255', 'the slot of the one exec, again', SLOT),
  another('execveat-255-path', 'the slot with a path, which would be taken instead', SLOT),
  another('execveat-255-high-bits', 'the same, with bits that the kernel ignores', SLOT),
  attempt('limit', 'fill-255', 'a descriptor of its own in the slot', 'EBADF'),
  attempt('filter', 'memfd-exec', 'a program from memory', 'ENOSYS'),
  another('scratch-exec', 'a program that it wrote itself'),
  another('set-id-exec', 'a set-id program that it wrote itself'),
]

const SHARE: readonly Attempt[] = [
  attempt('limit', 'fork-bomb', 'processes without end', ['EAGAIN']),
  attempt('limit', 'memory', 'memory without end', 'ENOMEM'),
  attempt('filter', 'memory-shared', 'shared memory, which no limit counts'),
  attempt('filter', 'memory-shared-validated', 'shared memory by the younger flag'),
  attempt('view', 'memory-of-zeros', 'shared memory of the zero device', ['ENODEV', 'EACCES']),
  attempt('filter', 'memory-of-stacks', 'memory that grows as a stack, which no limit counts'),
  attempt('limit', 'memory-locked', 'memory that cannot be swapped', ['ENOMEM', 'EPERM', 'EAGAIN']),
  attempt('limit', 'fill-scratch', 'the disk, by way of /tmp', ['ENOSPC', 'EFBIG']),
  attempt('limit', 'fill-dev-shm', 'the memory, by way of /dev/shm', ['ENOSPC', 'EFBIG']),
  attempt('limit', 'fill-request-folder', 'the memory, by way of the request folder', ['ENOSPC', 'EFBIG']),
  attempt('limit', 'long-file', 'a file of one tebibyte', ['EFBIG', 'SIGXFSZ']),
  attempt('limit', 'descriptors', 'descriptors without end', 'EMFILE'),
  attempt('limit', 'crash-dump', "the host's crash handler", 'EFBIG'),
  attempt('limit', 'processor-time', 'more processor time'),
]

export const MACHINE_ATTEMPTS: readonly Attempt[] = [...MACHINE, ...FILES, ...PROGRAMS, ...SHARE]
