/**
 * The calls that the tool's filter refuses whole, and those that it takes on descriptor 8 alone, each family with its
 * reason. Only names: which number a call has and what a filter makes of it is decided elsewhere.
 * Source: syscalls(2), sysvipc(7), mq_overview(7), inotify(7), memfd_create(2), io_setup(2), unix(7).
 */
import type { CallName } from './system-calls.js'

// biome-ignore format: one line a family
export const DENIED: readonly CallName[] = [
  // New connections, and sockets that could become one; io_uring opens and connects past a filter.
  'socket', 'connect', 'bind', 'listen', 'accept', 'accept4',
  'io_uring_setup', 'io_uring_enter', 'io_uring_register',
  // Another process's memory and descriptors.
  'ptrace', 'process_vm_readv', 'process_vm_writev', 'pidfd_getfd', 'kcmp', 'process_madvise', 'process_mrelease',
  // Keys of the session that launched us; programs and counters in the kernel.
  'keyctl', 'add_key', 'request_key', 'bpf', 'perf_event_open', 'userfaultfd', 'fanotify_init',
  // The view, and namespaces in which it could be changed.
  'mount', 'umount2', 'pivot_root', 'chroot', 'open_tree', 'move_mount', 'fsopen', 'fsconfig', 'fsmount', 'fspick',
  'mount_setattr', 'statmount', 'listmount', 'setns', 'unshare', 'open_by_handle_at', 'name_to_handle_at',
  // A second filter with a listener of its own would overrule the one exec.
  'seccomp', 'lsm_set_self_attr',
  // The machine. All need capabilities that are gone; their code need not be reachable at all.
  'kexec_load', 'kexec_file_load', 'init_module', 'finit_module', 'delete_module', 'create_module',
  'get_kernel_syms', 'query_module', 'reboot', 'swapon', 'swapoff', 'sethostname', 'setdomainname', 'syslog',
  'vhangup', 'acct', 'adjtimex', 'clock_adjtime', 'clock_settime', 'settimeofday', 'quotactl', 'quotactl_fd',
  'lookup_dcookie', 'nfsservctl', 'mbind', 'set_mempolicy', 'set_mempolicy_home_node', 'migrate_pages',
  'move_pages', 'iopl', 'ioperm', 'modify_ldt', 'uselib', '_sysctl', 'sysfs', 'ustat', 'vserver',
  // Memory that counts against no limit of the tool, though the namespace keeps it from others.
  'shmget', 'shmat', 'shmctl', 'shmdt', 'semget', 'semop', 'semctl', 'semtimedop',
  'msgget', 'msgsnd', 'msgrcv', 'msgctl',
  'mq_open', 'mq_unlink', 'mq_timedsend', 'mq_timedreceive', 'mq_notify', 'mq_getsetattr',
  // One counter for the whole machine; waits for every disk of the machine.
  'io_setup', 'io_destroy', 'io_getevents', 'io_submit', 'io_cancel', 'io_pgetevents', 'sync', 'syncfs',
]

/** Answered as on a kernel without them, because programs then go another way. */
export const ABSENT: readonly CallName[] = [
  // Its flags lie in memory, where a filter cannot look; every libc falls back to clone.
  'clone3',
  // Memory without a limit, in which a program could lie.
  'memfd_create',
  'memfd_secret',
  // They tell which files of /usr the rest of the machine opens.
  'inotify_init',
  'inotify_init1',
  'cachestat',
]

export interface StreamCall {
  readonly name: CallName
  /** Which argument holds the MSG_ flags. */
  readonly flags: 2 | 3 | null
}

export const ON_STREAM_ONLY: readonly StreamCall[] = [
  { name: 'sendto', flags: 3 },
  { name: 'sendmsg', flags: 2 },
  { name: 'sendmmsg', flags: 3 },
  { name: 'recvfrom', flags: 3 },
  { name: 'recvmsg', flags: 2 },
  { name: 'recvmmsg', flags: 3 },
  { name: 'shutdown', flags: null },
]
