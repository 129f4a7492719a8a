/*
 * Asks the kernel for one thing after the other and prints what it answered: `NAME ok` or `NAME ERRNO`.
 * Only asks: nothing that was granted is used.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void tell(const char *name, long result) {
  printf("%s %s\n", name, result >= 0 ? "ok" : strerrorname_np(errno));
}

static void ask_sockets(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/run/chio/other"};
  int pair[2];
  char byte = 0;
  struct iovec part = {.iov_base = &byte, .iov_len = 1};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  int value = 1;
  tell("socket-unix", socket(AF_UNIX, SOCK_STREAM, 0));
  tell("socket-inet", socket(AF_INET, SOCK_STREAM, 0));
  tell("socket-inet6", socket(AF_INET6, SOCK_DGRAM, 0));
  tell("socket-netlink", socket(AF_NETLINK, SOCK_RAW, 0));
  tell("socket-vsock", socket(AF_VSOCK, SOCK_STREAM, 0));
  tell("socket-packet", socket(AF_PACKET, SOCK_RAW, 0));
  tell("socket-alg", socket(AF_ALG, SOCK_SEQPACKET, 0));
  tell("socketpair-stream", socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
  tell("socketpair-dgram", socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
  tell("socketpair-seqpacket", socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
  tell("connect-8", connect(8, (struct sockaddr *)&address, sizeof address));
  tell("bind-8", bind(8, (struct sockaddr *)&address, sizeof address));
  tell("listen-8", listen(8, 1));
  tell("accept-8", accept(8, NULL, NULL));
  tell("sendmsg-1", sendmsg(1, &message, 0));
  tell("send-1", send(1, &byte, 1, 0));
  tell("shutdown-1", shutdown(1, SHUT_WR));
  tell("send-high-1", syscall(SYS_sendto, 1L + (1L << 32), &byte, 1L, 0, NULL, 0L));
  tell("setsockopt-8", setsockopt(8, SOL_SOCKET, SO_PASSCRED, &value, sizeof value));
  tell("io_uring", syscall(SYS_io_uring_setup, 1, NULL));
}

static void ask_others(void) {
  tell("ptrace", ptrace(PTRACE_TRACEME, 0, NULL, NULL));
  tell("process_vm_readv", syscall(SYS_process_vm_readv, 1, NULL, 0L, NULL, 0L, 0L));
  tell("pidfd_getfd", syscall(SYS_pidfd_getfd, 0, 0, 0));
  tell("mem-1", open("/proc/1/mem", O_RDWR));
  tell("environ-1", open("/proc/1/environ", O_RDONLY));
  tell("fd-1", open("/proc/1/fd", O_RDONLY | O_DIRECTORY));
  tell("root-1", open("/proc/1/root/etc/passwd", O_RDONLY));
  tell("keyctl", syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0));
  tell("bpf", syscall(SYS_bpf, 0, NULL, 0));
  tell("perf", syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0));
  tell("userfaultfd", syscall(SYS_userfaultfd, 0));
  tell("unshare", unshare(CLONE_NEWUSER));
  tell("unshare-time", unshare(0x80));
  tell("setns", setns(0, 0));
  tell("clone-newuser", syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL));
  tell("clone-high-newnet", syscall(SYS_clone, (1L << 32) | CLONE_NEWNET | SIGCHLD, NULL, NULL, NULL, NULL));
  tell("clone3", syscall(SYS_clone3, NULL, 0));
  tell("mount", mount("none", "/tmp", "tmpfs", 0, NULL));
  tell("umount", umount2("/proc", MNT_DETACH));
  tell("open_tree", syscall(SYS_open_tree, AT_FDCWD, "/", 0));
  tell("open_by_handle_at", syscall(SYS_open_by_handle_at, AT_FDCWD, NULL, 0));
  tell("seccomp", syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, NULL));
  tell("prctl-seccomp", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL));
  tell("unknown", syscall(999));
}

static void ask_terminal(void) {
  const char letter = 'x';
  tell("tiocsti", syscall(SYS_ioctl, 0, 0x5412L, &letter));
  tell("tiocsti-high", syscall(SYS_ioctl, 0, 0x5412L + (1L << 32), &letter));
  tell("tioclinux", syscall(SYS_ioctl, 0, 0x541cL, &letter));
  tell("tioclinux-high", syscall(SYS_ioctl, 0, 0x541cL + (7L << 32), &letter));
  tell("tty", open("/dev/tty", O_RDWR));
  tell("ptmx", open("/dev/ptmx", O_RDWR));
}

static void ask_exec(void) {
  char *arguments[] = {"true", NULL};
  int at_255 = fcntl(open("/usr/bin/true", O_RDONLY), F_DUPFD, 255);
  tell("descriptor-255", at_255);
  tell("execve", execve("/usr/bin/true", arguments, environ));
  tell("execveat-path", syscall(SYS_execveat, AT_FDCWD, "/usr/bin/true", arguments, environ, 0));
  tell("execveat-255", syscall(SYS_execveat, 255, "", arguments, environ, AT_EMPTY_PATH));
  tell("execveat-255-absolute", syscall(SYS_execveat, 255, "/usr/bin/true", arguments, environ, AT_EMPTY_PATH));
  tell("execveat-255-high", syscall(SYS_execveat, 255L + (1L << 32), "/usr/bin/true", arguments, environ, 0x1000L));
}

static void ask_files(void) {
  tell("write-root", open("/x", O_CREAT | O_WRONLY, 0600));
  tell("write-usr", open("/usr/x", O_CREAT | O_WRONLY, 0600));
  tell("write-dev", open("/dev/x", O_CREAT | O_WRONLY, 0600));
  tell("write-tmp", open("/tmp/x", O_CREAT | O_WRONLY, 0600));
  tell("passwd", open("/etc/passwd", O_RDONLY));
  tell("home", open("/root", O_RDONLY));
  tell("fork", fork());
}

int main(void) {
  pid_t self = getpid();
  setvbuf(stdout, NULL, _IOLBF, 0);
  ask_sockets();
  ask_others();
  ask_terminal();
  ask_exec();
  ask_files();
  if (getpid() != self) return 0;
  while (wait(NULL) > 0) {
  }
  return 0;
}
