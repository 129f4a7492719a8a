/**
 * Call numbers of the two architectures, for the calls that a filter of ours names. A name that an architecture
 * does not have is absent. Compared by a test with the kernel's headers where those are installed.
 * Source: asm/unistd_64.h (x86_64), asm-generic/unistd.h (aarch64).
 */
export type Architecture = 'x64' | 'arm64'

/** The last call that was looked at for these lists (removexattrat, Linux 6.13). */
export const HIGHEST_KNOWN_CALL = 466

/** Calls from 424 on have one number everywhere. */
const SHARED = {
  io_uring_setup: 425,
  io_uring_enter: 426,
  io_uring_register: 427,
  open_tree: 428,
  move_mount: 429,
  fsopen: 430,
  fsconfig: 431,
  fsmount: 432,
  fspick: 433,
  clone3: 435,
  pidfd_getfd: 438,
  process_madvise: 440,
  mount_setattr: 442,
  quotactl_fd: 443,
  memfd_secret: 447,
  process_mrelease: 448,
  set_mempolicy_home_node: 450,
  cachestat: 451,
  statmount: 457,
  listmount: 458,
  lsm_set_self_attr: 460,
} as const

// biome-ignore format: a table, one line a family
const X64 = {
  ...SHARED,
  socket: 41, connect: 42, accept: 43, sendto: 44, recvfrom: 45, sendmsg: 46, recvmsg: 47, shutdown: 48,
  bind: 49, listen: 50, socketpair: 53, setsockopt: 54, getsockopt: 55, accept4: 288, recvmmsg: 299, sendmmsg: 307,
  mmap: 9, fcntl: 72, clone: 56, execve: 59, execveat: 322, ioctl: 16, prctl: 157, personality: 135, seccomp: 317,
  ptrace: 101, process_vm_readv: 310, process_vm_writev: 311, kcmp: 312,
  add_key: 248, request_key: 249, keyctl: 250,
  bpf: 321, perf_event_open: 298, userfaultfd: 323, fanotify_init: 300,
  mount: 165, umount2: 166, pivot_root: 155, chroot: 161, setns: 308, unshare: 272,
  kexec_load: 246, kexec_file_load: 320, init_module: 175, finit_module: 313, delete_module: 176,
  open_by_handle_at: 304, name_to_handle_at: 303,
  acct: 163, adjtimex: 159, clock_adjtime: 305, clock_settime: 227, settimeofday: 164,
  reboot: 169, swapon: 167, swapoff: 168, sethostname: 170, setdomainname: 171, syslog: 103, vhangup: 153,
  quotactl: 179, lookup_dcookie: 212, nfsservctl: 180,
  mbind: 237, set_mempolicy: 238, migrate_pages: 256, move_pages: 279,
  iopl: 172, ioperm: 173, modify_ldt: 154, uselib: 134, _sysctl: 156, sysfs: 139, ustat: 136,
  create_module: 174, get_kernel_syms: 177, query_module: 178, vserver: 236,
  memfd_create: 319, inotify_init: 253, inotify_init1: 294, sync: 162, syncfs: 306,
  shmget: 29, shmat: 30, shmctl: 31, shmdt: 67, semget: 64, semop: 65, semctl: 66, semtimedop: 220,
  msgget: 68, msgsnd: 69, msgrcv: 70, msgctl: 71,
  mq_open: 240, mq_unlink: 241, mq_timedsend: 242, mq_timedreceive: 243, mq_notify: 244, mq_getsetattr: 245,
  io_setup: 206, io_destroy: 207, io_getevents: 208, io_submit: 209, io_cancel: 210, io_pgetevents: 333,
  close: 3, write: 1, wait4: 61, exit: 60, exit_group: 231, rt_sigreturn: 15, restart_syscall: 219,
} as const

// biome-ignore format: a table, one line a family
const ARM64 = {
  ...SHARED,
  socket: 198, socketpair: 199, bind: 200, listen: 201, accept: 202, connect: 203, sendto: 206, recvfrom: 207,
  setsockopt: 208, getsockopt: 209, shutdown: 210, sendmsg: 211, recvmsg: 212, accept4: 242, recvmmsg: 243, sendmmsg: 269,
  mmap: 222, fcntl: 25, clone: 220, execve: 221, execveat: 281, ioctl: 29, prctl: 167, personality: 92, seccomp: 277,
  ptrace: 117, process_vm_readv: 270, process_vm_writev: 271, kcmp: 272,
  add_key: 217, request_key: 218, keyctl: 219,
  bpf: 280, perf_event_open: 241, userfaultfd: 282, fanotify_init: 262,
  mount: 40, umount2: 39, pivot_root: 41, chroot: 51, setns: 268, unshare: 97,
  kexec_load: 104, kexec_file_load: 294, init_module: 105, finit_module: 273, delete_module: 106,
  open_by_handle_at: 265, name_to_handle_at: 264,
  acct: 89, adjtimex: 171, clock_adjtime: 266, clock_settime: 112, settimeofday: 170,
  reboot: 142, swapon: 224, swapoff: 225, sethostname: 161, setdomainname: 162, syslog: 116, vhangup: 58,
  quotactl: 60, lookup_dcookie: 18, nfsservctl: 42,
  mbind: 235, set_mempolicy: 237, migrate_pages: 238, move_pages: 239,
  memfd_create: 279, inotify_init1: 26, sync: 81, syncfs: 267,
  shmget: 194, shmctl: 195, shmat: 196, shmdt: 197, semget: 190, semctl: 191, semtimedop: 192, semop: 193,
  msgget: 186, msgctl: 187, msgrcv: 188, msgsnd: 189,
  mq_open: 180, mq_unlink: 181, mq_timedsend: 182, mq_timedreceive: 183, mq_notify: 184, mq_getsetattr: 185,
  io_setup: 0, io_destroy: 1, io_submit: 2, io_cancel: 3, io_getevents: 4, io_pgetevents: 292,
  close: 57, write: 64, wait4: 260, exit: 93, exit_group: 94, rt_sigreturn: 139, restart_syscall: 128,
} as const

export type CallName = keyof typeof X64

const NUMBERS: Record<Architecture, Partial<Record<CallName, number>>> = { x64: X64, arm64: ARM64 }

/** The call's number, or undefined where the architecture has no such call. */
export function callNumber(architecture: Architecture, name: CallName): number | undefined {
  return NUMBERS[architecture][name]
}

export function callNames(architecture: Architecture): CallName[] {
  return Object.keys(NUMBERS[architecture]) as CallName[]
}
