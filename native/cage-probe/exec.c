/*
 * Another program: by path, by descriptor, by the slot of the one exec, from memory, from the scratch folder, through
 * a script. Where policy allows exec, this program is executed again and looks whether the walls went along.
 * Source: execve(2), execveat(2), fexecve(3), memfd_create(2).
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cage-probe.h"

enum { TARGET = 255, OTHER = 9, COPIED_BYTES = 1 << 30 };

static const char SELF[] = "/proc/self/exe";
static char *const walled[] = {(char *)"cage-probe", (char *)"walled", NULL};
static char *const empty[] = {NULL};

/* Run by the exec: the filter, no_new_privs and the lack of sockets must have come along. */
int look_at_walls(void) {
  bool filtered = prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 2 && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
  bool alone = socket(AF_UNIX, SOCK_STREAM, 0) < 0 && errno == EPERM;
  return filtered && alone ? WALLED : 0;
}

static long by_path(void) { return execve(SELF, walled, empty); }
static long by_system_path(void) { return execve("/usr/bin/true", walled, empty); }
static long at_path(void) { return syscall(SYS_execveat, AT_FDCWD, SELF, walled, empty, 0); }
static long at_slot(void) { return syscall(SYS_execveat, TARGET, "", walled, empty, AT_EMPTY_PATH); }
static long at_slot_path(void) { return syscall(SYS_execveat, TARGET, SELF, walled, empty, AT_EMPTY_PATH); }

static long at_slot_high(void) {
  return syscall(SYS_execveat, TARGET + (1L << 32), SELF, walled, empty, AT_EMPTY_PATH + (1L << 32));
}

static long at_descriptor(void) {
  return syscall(SYS_execveat, open(SELF, O_RDONLY | O_CLOEXEC), "", walled, empty, AT_EMPTY_PATH);
}

/* The slot's number taken by a descriptor of the tool's own. */
static long fill_slot(void) { return dup3(open(SELF, O_RDONLY), TARGET, O_CLOEXEC); }

static long copy_to(int to) {
  int from = open(SELF, O_RDONLY | O_CLOEXEC);
  return sendfile(to, from, NULL, COPIED_BYTES);
}

static long from_memory(void) {
  int fd = (int)syscall(SYS_memfd_create, "probe", 0);
  if (fd < 0) return fd;
  copy_to(fd);
  return syscall(SYS_execveat, fd, "", walled, empty, AT_EMPTY_PATH);
}

static long from_scratch(void) {
  int fd = open("/tmp/copy", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
  if (fd < 0) return fd;
  copy_to(fd);
  close(fd);
  return execve("/tmp/copy", walled, empty);
}

/* A set-id copy is the tool's own; nosuid mounts and no_new_privs leave it what it is. */
static long from_set_id(void) {
  int fd = open("/tmp/set-id", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
  if (fd < 0) return fd;
  copy_to(fd);
  fchmod(fd, 06755);
  close(fd);
  return execve("/tmp/set-id", walled, empty);
}

#ifdef __x86_64__
static const char LOADER[] = "/lib64/ld-linux-x86-64.so.2";
#else
static const char LOADER[] = "/lib/ld-linux-aarch64.so.1";
#endif

static long by_loader(void) {
  char *const through[] = {(char *)"ld.so", (char *)"/usr/bin/true", NULL};
  return execve(LOADER, through, empty);
}

const struct attempt exec_attempts[] = {
    {"execve-self", by_path},
    {"execve-usr", by_system_path},
    {"execve-loader", by_loader},
    {"execveat-path", at_path},
    {"execveat-descriptor", at_descriptor},
    {"execveat-255", at_slot},
    {"execveat-255-path", at_slot_path},
    {"execveat-255-high-bits", at_slot_high},
    {"fill-255", fill_slot},
    {"memfd-exec", from_memory},
    {"scratch-exec", from_scratch},
    {"set-id-exec", from_set_id},
    {NULL, NULL},
};
