/*
 * Other processes: process 1 of the cage, which has more calls than the tool, and one outside, of the launcher's user.
 * Asked for are their memory, descriptors, environment, limits, and their end.
 * Source: ptrace(2), process_vm_readv(2), pidfd_open(2), proc(5), kill(2), prlimit(2), sched_setattr(2).
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "cage-probe.h"

enum { PTRACER = 0x59616d61 };

static long trace_me(void) { return ptrace(PTRACE_TRACEME, 0, NULL, NULL); }
static long trace_warden(void) { return ptrace(PTRACE_ATTACH, 1, NULL, NULL); }
static long seize_warden(void) { return ptrace(PTRACE_SEIZE, 1, NULL, NULL); }

static long trace_sibling(void) {
  prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
  prctl(PTRACER, -1L, 0, 0, 0);
  return ptrace(PTRACE_SEIZE, getppid(), NULL, NULL);
}

static long read_memory(pid_t pid) {
  char byte;
  struct iovec here = {.iov_base = &byte, .iov_len = 1};
  struct iovec there = {.iov_base = (void *)(size_t)0x400000, .iov_len = 1};
  return process_vm_readv(pid, &here, 1, &there, 1, 0);
}

static long read_warden_memory(void) { return read_memory(1); }
static long read_own_memory(void) { return read_memory(getpid()); }

static long write_memory(void) {
  char byte = 0;
  struct iovec here = {.iov_base = &byte, .iov_len = 1};
  struct iovec there = {.iov_base = (void *)(size_t)0x400000, .iov_len = 1};
  return process_vm_writev(1, &here, 1, &there, 1, 0);
}

static long handle_outside(void) { return syscall(SYS_pidfd_open, outside_pid, 0); }

static long take_descriptor(void) {
  long handle = syscall(SYS_pidfd_open, 1, 0);
  return syscall(SYS_pidfd_getfd, handle, 0, 0);
}

static long compare(void) { return syscall(SYS_kcmp, getpid(), 1, 0, 0L, 0L); }
static long advise(void) { return syscall(SYS_process_madvise, 0, NULL, 0L, 0, 0); }
static long release_memory(void) { return syscall(SYS_process_mrelease, 0, 0); }
static long robust_list(void) { return syscall(SYS_get_robust_list, 1, &(void *){NULL}, &(size_t){0}); }

static long session_keyring(void) {
  return syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0);
}
static long add_key(void) { return syscall(SYS_add_key, "user", "chio", "x", 1L, KEY_SPEC_USER_KEYRING); }
static long request_key(void) { return syscall(SYS_request_key, "user", "chio", NULL, KEY_SPEC_USER_KEYRING); }

static long open_of(pid_t pid, const char *member, int flags) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, member);
  return open(path, flags);
}

static long warden_memory(void) { return open_of(1, "mem", O_RDWR); }
static long warden_environment(void) { return open_of(1, "environ", O_RDONLY); }
static long warden_descriptors(void) { return open_of(1, "fd", O_RDONLY | O_DIRECTORY); }
static long warden_root(void) { return open_of(1, "root/etc/passwd", O_RDONLY); }
static long warden_folder(void) { return open_of(1, "cwd/.", O_RDONLY); }
static long warden_mapping(void) { return open_of(1, "maps", O_RDONLY); }
static long warden_namespace(void) { return open_of(1, "ns/net", O_RDONLY); }
static long outside_status(void) { return open_of(outside_pid, "status", O_RDONLY); }
static long outside_environment(void) { return open_of(outside_pid, "environ", O_RDONLY); }

/* Process 1, the probe and this one are what there is. */
static long count_processes(void) {
  DIR *list = opendir("/proc");
  long count = 0;
  if (list == NULL) return -1;
  for (struct dirent *entry = readdir(list); entry != NULL; entry = readdir(list)) {
    if (isdigit((unsigned char)entry->d_name[0])) count++;
  }
  closedir(list);
  note(count);
  return count > 3 ? 0 : refused(ENOENT);
}

static long kill_outside(void) { return kill(outside_pid, SIGKILL); }
static long kill_thread_outside(void) { return syscall(SYS_tkill, outside_pid, SIGKILL); }
static long signal_everyone(void) { return kill(-1, SIGUSR2); }
static long signal_group(void) { return kill(0, SIGUSR2); }
static long kill_warden(void) { return kill(1, SIGKILL); }

static long limit_outside(void) {
  struct rlimit value = {0, 0};
  return prlimit(outside_pid, RLIMIT_NOFILE, &value, NULL);
}

static long raise_limit(void) {
  struct rlimit value = {RLIM_INFINITY, RLIM_INFINITY};
  return prlimit(0, RLIMIT_NOFILE, &value, NULL);
}

static long raise_warden_limit(void) {
  struct rlimit value = {RLIM_INFINITY, RLIM_INFINITY};
  return prlimit(1, RLIMIT_NOFILE, &value, NULL);
}

static long affinity_outside(void) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(0, &one);
  return sched_setaffinity(outside_pid, sizeof one, &one);
}

static long real_time(void) {
  struct sched_param priority = {.sched_priority = 1};
  return sched_setscheduler(0, SCHED_FIFO, &priority);
}

static long raise_priority(void) { return setpriority(PRIO_PROCESS, 0, -20); }

const struct attempt process_attempts[] = {
    {"ptrace-traceme", trace_me},
    {"ptrace-attach", trace_warden},
    {"ptrace-seize", seize_warden},
    {"ptrace-sibling", trace_sibling},
    {"process-vm-readv", read_warden_memory},
    {"process-vm-readv-own", read_own_memory},
    {"process-vm-writev", write_memory},
    {"pidfd-open-outside", handle_outside},
    {"pidfd-getfd", take_descriptor},
    {"kcmp", compare},
    {"process-madvise", advise},
    {"process-mrelease", release_memory},
    {"robust-list-1", robust_list},
    {"keyctl", session_keyring},
    {"add-key", add_key},
    {"request-key", request_key},
    {"proc-1-mem", warden_memory},
    {"proc-1-environ", warden_environment},
    {"proc-1-fd", warden_descriptors},
    {"proc-1-root", warden_root},
    {"proc-1-cwd", warden_folder},
    {"proc-1-maps", warden_mapping},
    {"proc-1-ns", warden_namespace},
    {"proc-outside-status", outside_status},
    {"proc-outside-environ", outside_environment},
    {"proc-others", count_processes},
    {"kill-outside", kill_outside},
    {"tkill-outside", kill_thread_outside},
    {"kill-everyone", signal_everyone},
    {"kill-group", signal_group},
    {"kill-1", kill_warden},
    {"prlimit-outside", limit_outside},
    {"prlimit-raise", raise_limit},
    {"prlimit-raise-1", raise_warden_limit},
    {"affinity-outside", affinity_outside},
    {"real-time-priority", real_time},
    {"raise-priority", raise_priority},
    {NULL, NULL},
};
