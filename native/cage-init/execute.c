/*
 * The exec of the tool. Where policy says once, exactly one exec is possible: the filter puts every execveat of
 * descriptor 255 to a listener, a thread of this process answers the first, and the exec itself ends that thread and
 * closes the listener (close-on-exec), so that the kernel answers every later one with ENOSYS. A rule on the number
 * 255 alone would not do: with an absolute path execveat ignores its descriptor, and a filter cannot read the path.
 * Source: execveat(2), seccomp_unotify(2), SECCOMP_USER_NOTIF_FLAG_CONTINUE.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cage-init.h"

/* The default of eight mebibytes would count against the tool's own data limit. */
enum { ANSWER_STACK_BYTES = 64 * 1024 };

/* The kernel writes its own sizes, which may grow: room beyond ours, zeroed as it demands. */
union question {
  struct seccomp_notif value;
  char room[512];
};

union reply {
  struct seccomp_notif_resp value;
  char room[512];
};

/* Early, while the cage only waits: a tool that cannot run must not cost a prepared stream. */
void open_target(const struct plan *plan) {
  struct rlimit descriptors;
  if (access(plan->executable, X_OK) != 0) fail("access target", errno);
  if (!plan->exec_once) return;
  if (getrlimit(RLIMIT_NOFILE, &descriptors) != 0) fail("getrlimit", errno);
  if (descriptors.rlim_max <= TARGET_SLOT) fail("slot 255", EMFILE);
  if (descriptors.rlim_cur <= TARGET_SLOT) {
    descriptors.rlim_cur = descriptors.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &descriptors) != 0) fail("setrlimit", errno);
  }
  int fd = open(plan->executable, O_PATH | O_CLOEXEC);
  if (fd < 0) fail("open target", errno);
  move_descriptor(fd, TARGET_SLOT, O_CLOEXEC);
}

/* A listener that cannot answer is closed: the exec then fails with ENOSYS and is reported, and nobody waits. */
static void *answer_first(void *argument) {
  int listener = *(int *)argument;
  union question question;
  union reply reply;
  memset(&question, 0, sizeof question);
  memset(&reply, 0, sizeof reply);
  if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &question) == 0 && question.value.data.nr == SYS_execveat) {
    reply.value.id = question.value.id;
    reply.value.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &reply) == 0) return NULL;
  }
  close(listener);
  return NULL;
}

void admit_one_exec(int listener) {
  static int kept;
  pthread_t answering;
  pthread_attr_t small;
  kept = listener;
  int error = pthread_attr_init(&small);
  if (error == 0) error = pthread_attr_setstacksize(&small, ANSWER_STACK_BYTES);
  if (error == 0) error = pthread_create(&answering, &small, answer_first, &kept);
  if (error != 0) fail("pthread_create", error);
}

_Noreturn void execute(const struct plan *plan) {
  if (plan->exec_once) {
    syscall(SYS_execveat, TARGET_SLOT, "", plan->arguments, plan->environment, AT_EMPTY_PATH);
    fail("execveat", errno);
  }
  execve(plan->executable, plan->arguments, plan->environment);
  fail("execve", errno);
}
