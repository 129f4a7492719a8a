/*
 * Namespaces and identity: a user namespace of one's own, in which every capability would be had, the namespaces of
 * others, other ids, other capabilities. A child that a clone made all the same ends at once.
 * Source: clone(2), unshare(2), setns(2), user_namespaces(7), ioctl_ns(2), capabilities(7).
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cage-probe.h"

enum { PARENT_OF_NAMESPACE = 0xb702, OWNER_OF_NAMESPACE = 0xb701, NEW_TIME = 0x80 };

/* Each alone; the first that is not refused with EPERM is noted by its place. */
static long unshare_each(void) {
  static const int flags[] = {CLONE_NEWUSER, CLONE_NEWNS,     CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC,
                              CLONE_NEWUTS,  CLONE_NEWCGROUP, NEW_TIME,     CLONE_NEWUSER | CLONE_NEWNET};
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
    long result = unshare(flags[i]);
    if (result < 0 && errno == EPERM) continue;
    note((long)i);
    return result;
  }
  return refused(EPERM);
}

static long clone_with(unsigned long flags) {
  long child = syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, NULL);
  if (child == 0) _exit(0);
  return child;
}

static long clone_each(void) {
  static const unsigned long flags[] = {CLONE_NEWUSER, CLONE_NEWNS,  CLONE_NEWPID,    CLONE_NEWNET,
                                        CLONE_NEWIPC,  CLONE_NEWUTS, CLONE_NEWCGROUP, CLONE_NEWUSER | CLONE_NEWNS};
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
    long result = clone_with(flags[i]);
    if (result < 0 && errno == EPERM) continue;
    note((long)i);
    return result;
  }
  return refused(EPERM);
}

static long clone_high(void) { return clone_with((1UL << 32) | CLONE_NEWUSER); }

static long clone_structured(void) {
  struct clone_args arguments = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
  long child = syscall(SYS_clone3, &arguments, sizeof arguments);
  if (child == 0) _exit(0);
  return child;
}

static long enter_own(void) { return setns(open("/proc/self/ns/user", O_RDONLY), 0); }
static long enter_by_handle(void) { return setns((int)syscall(SYS_pidfd_open, 1, 0), CLONE_NEWNS); }
static long parent_namespace(void) { return ioctl(open("/proc/self/ns/user", O_RDONLY), PARENT_OF_NAMESPACE); }
static long owner_namespace(void) { return ioctl(open("/proc/self/ns/net", O_RDONLY), OWNER_OF_NAMESPACE); }

static long map_ids(void) {
  int fd = open("/proc/self/uid_map", O_WRONLY);
  return fd < 0 ? fd : write(fd, "0 0 1\n", 6);
}

static long become_root(void) { return setresuid(0, 0, 0); }

static long join_root_group(void) {
  gid_t root = 0;
  return setgroups(1, &root);
}

static long take_capabilities(void) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct data[2] = {{~0U, ~0U, 0}, {~0U, ~0U, 0}};
  return syscall(SYS_capset, &header, data);
}

static long ambient_capability(void) { return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0); }
static long secure_bits(void) { return prctl(PR_SET_SECUREBITS, 1, 0, 0, 0); }
static long allow_privileges(void) { return prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0); }

const struct attempt namespace_attempts[] = {
    {"unshare-each", unshare_each},
    {"clone-each", clone_each},
    {"clone-high-bits", clone_high},
    {"clone3", clone_structured},
    {"setns-own", enter_own},
    {"setns-pidfd", enter_by_handle},
    {"ioctl-parent-namespace", parent_namespace},
    {"ioctl-owner-namespace", owner_namespace},
    {"uid-map", map_ids},
    {"setuid-root", become_root},
    {"setgroups-root", join_root_group},
    {"capset", take_capabilities},
    {"ambient-capability", ambient_capability},
    {"secure-bits", secure_bits},
    {"allow-new-privileges", allow_privileges},
    {NULL, NULL},
};
