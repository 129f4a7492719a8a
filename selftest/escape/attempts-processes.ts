// The ways to other processes, to other namespaces and ids, and to another view. Rows only.
// Source: native/cage-probe/processes.c, namespaces.c and mounts.c, which make these attempts by these names.
import { attempt, type Attempt, harmless } from './attempt.js'

const NOT_THERE = ['ESRCH'] as const

const PROCESSES: readonly Attempt[] = [
  attempt('filter', 'ptrace-traceme', 'to be traced'),
  attempt('filter', 'ptrace-attach', 'to trace the warden'),
  attempt('filter', 'ptrace-seize', 'to trace the warden'),
  attempt('filter', 'ptrace-sibling', 'to trace a process of its own that asks for it'),
  attempt('filter', 'process-vm-readv', "the warden's memory"),
  attempt('filter', 'process-vm-readv-own', 'its own memory by this call'),
  attempt('filter', 'process-vm-writev', "the warden's memory, written"),
  attempt('namespace', 'pidfd-open-outside', 'a handle on a process outside', NOT_THERE),
  attempt('filter', 'pidfd-getfd', "one of the warden's descriptors"),
  attempt('filter', 'kcmp', 'what it shares with the warden'),
  attempt('filter', 'process-madvise', "another's memory thrown out"),
  attempt('filter', 'process-mrelease', "another's memory released"),
  attempt('warden', 'robust-list-1', "an address in the warden's memory"),
  attempt('filter', 'keyctl', "the launcher's session keyring"),
  attempt('filter', 'add-key', 'a key for the user'),
  attempt('filter', 'request-key', 'a key of the user'),
  attempt('warden', 'proc-1-mem', "the warden's memory as a file", 'EACCES'),
  attempt('warden', 'proc-1-environ', "the warden's environment", 'EACCES'),
  attempt('warden', 'proc-1-fd', "the warden's descriptors", 'EACCES'),
  attempt('warden', 'proc-1-root', "the warden's root", 'EACCES'),
  attempt('warden', 'proc-1-cwd', "the warden's folder", 'EACCES'),
  attempt('warden', 'proc-1-maps', "the warden's mappings", 'EACCES'),
  attempt('warden', 'proc-1-ns', "the warden's namespaces", 'EACCES'),
  attempt('namespace', 'proc-outside-status', 'a process outside in /proc', 'ENOENT'),
  attempt('namespace', 'proc-outside-environ', 'the environment of a process outside', 'ENOENT'),
  attempt('namespace', 'proc-others', 'processes that are not its own', 'ENOENT'),
  attempt('namespace', 'kill-outside', 'the end of a process outside', NOT_THERE),
  attempt('namespace', 'tkill-outside', 'the end of a thread outside', NOT_THERE),
  harmless(
    attempt('namespace', 'kill-everyone', 'a signal to every process', NOT_THERE),
    'everywhere',
    "reaches the cage's own alone; the process outside lives on",
  ),
  harmless(
    attempt('namespace', 'kill-group', "a signal to the launcher's process group", NOT_THERE),
    'everywhere',
    'the group is its own; the process outside lives on',
  ),
  harmless(
    attempt('kernel', 'kill-1', "the warden's end"),
    'everywhere',
    'the kernel drops it: process 1 of a namespace takes no such signal from inside',
  ),
  attempt('namespace', 'prlimit-outside', 'limits of a process outside', NOT_THERE),
  attempt('limit', 'prlimit-raise', 'its own limits raised'),
  attempt('limit', 'prlimit-raise-1', "the warden's limits raised"),
  attempt('namespace', 'affinity-outside', 'a process outside moved to one processor', NOT_THERE),
  attempt('privilege', 'real-time-priority', 'every processor for itself'),
  attempt('privilege', 'raise-priority', 'a higher priority', ['EACCES', 'EPERM']),
]

const NAMESPACES: readonly Attempt[] = [
  attempt('filter', 'unshare-each', 'a namespace of its own, of each kind'),
  attempt('filter', 'clone-each', 'a child in a namespace of its own, of each kind'),
  attempt('filter', 'clone-high-bits', 'the same, with bits that the kernel ignores'),
  attempt('filter', 'clone3', 'the same, by the call whose flags no filter sees', 'ENOSYS'),
  attempt('filter', 'setns-own', 'another namespace entered'),
  attempt('filter', 'setns-pidfd', "the warden's mount namespace entered by its handle"),
  attempt('filter', 'ioctl-parent-namespace', 'the parent of its user namespace'),
  attempt('filter', 'ioctl-owner-namespace', 'the owner of its network namespace'),
  attempt('privilege', 'uid-map', 'other ids mapped'),
  attempt('namespace', 'setuid-root', 'to be root', ['EINVAL', 'EPERM']),
  attempt('privilege', 'setgroups-root', "root's group"),
  attempt('privilege', 'capset', 'every capability'),
  attempt('privilege', 'ambient-capability', 'a capability kept across exec'),
  attempt('privilege', 'secure-bits', 'other rules for capabilities'),
  attempt('kernel', 'allow-new-privileges', 'no_new_privs taken back', 'EINVAL'),
]

const VIEW: readonly Attempt[] = [
  attempt('filter', 'mount-tmpfs', 'a file system of its own'),
  attempt('filter', 'mount-proc', 'a /proc without what bwrap hides'),
  attempt('filter', 'mount-bind', 'a folder seen elsewhere'),
  attempt('filter', 'mount-remount', 'the root made writable'),
  attempt('filter', 'umount', 'a mount taken away'),
  attempt('filter', 'pivot-root', 'another root'),
  attempt('filter', 'chroot', 'another root'),
  attempt('filter', 'open-tree', 'a copy of the mounts'),
  attempt('filter', 'move-mount', 'a mount moved'),
  attempt('filter', 'fsopen', 'a file system, by the new calls'),
  attempt('filter', 'fsconfig', 'a file system, by the new calls'),
  attempt('filter', 'fsmount', 'a file system, by the new calls'),
  attempt('filter', 'fspick', 'a mounted file system, by the new calls'),
  attempt('filter', 'mount-setattr', 'the root made writable'),
  attempt('filter', 'statmount', "the host's mounts"),
  attempt('filter', 'listmount', "the host's mounts"),
  attempt(
    'filter',
    'open-tree-attr',
    'a copy of the mounts, by a call that is younger than the filter',
    'ENOSYS',
  ),
  attempt('filter', 'name-to-handle', 'a handle for a file'),
  attempt('filter', 'open-by-handle', 'a file of the host by its handle'),
]

export const PROCESS_ATTEMPTS: readonly Attempt[] = [...PROCESSES, ...NAMESPACES, ...VIEW]
