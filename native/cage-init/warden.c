/*
 * Process 1 of the cage. It waits for the tool's end, tells how it ended, and ends itself: the kernel then kills
 * whatever the tool left behind. bwrap's own init would do as much, but it runs as the tool's uid without a filter,
 * and a tool could write itself into it through /proc/1/mem and have every system call back. So this one is not
 * dumpable and its filter leaves it wait4, write to the status pipe, close and exit.
 * Source: pid_namespaces(7), ptrace(2) access mode checking, prctl(2) PR_SET_DUMPABLE.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cage-init.h"

enum { STATUS_BYTES = 32 };

static _Noreturn void report_and_end(int status_fd, int status) {
  char text[STATUS_BYTES];
  bool exited = WIFEXITED(status);
  int number = exited ? WEXITSTATUS(status) : WTERMSIG(status);
  int length = snprintf(text, sizeof text, "%s %d", exited ? "exit" : "signal", number);
  ssize_t ignored = write(status_fd, text, (size_t)length);
  (void)ignored;
  _exit(exited ? number : 128 + number);
}

static _Noreturn void watch(pid_t tool, int status_fd) {
  for (;;) {
    int status = 0;
    pid_t ended = waitpid(-1, &status, 0);
    if (ended == tool) report_and_end(status_fd, status);
    if (ended < 0 && errno != EINTR) _exit(1);
  }
}

static void arm(int status_fd, int armed_fd, const struct filter_program *filter) {
  int kept[] = {channel_fd(), status_fd, armed_fd};
  if (kept[1] > kept[2] || kept[0] > kept[1]) fail("close_range", EINVAL);
  close_all_but(kept, 3);
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) fail("prctl PR_SET_DUMPABLE", errno);
  refuse_new_privileges();
  install_filter(filter, false);
  close(channel_fd());
}

/* Returns in the child, once process 1 is armed. A fork and not a thread: the two need different walls. */
void split_warden(int status_fd, const struct filter_program *filter) {
  int armed[2];
  char byte;
  if (pipe2(armed, O_CLOEXEC) != 0) fail("pipe2", errno);
  int low[2] = {fcntl(armed[0], F_DUPFD_CLOEXEC, status_fd + 1), fcntl(armed[1], F_DUPFD_CLOEXEC, status_fd + 1)};
  if (low[0] < 0 || low[1] < 0) fail("fcntl F_DUPFD_CLOEXEC", errno);
  pid_t tool = fork();
  if (tool < 0) fail("fork", errno);
  if (tool > 0) {
    arm(status_fd, low[1], filter);
    close(low[1]);
    watch(tool, status_fd);
  }
  close(armed[1]);
  close(low[1]);
  if (read(low[0], &byte, 1) != 0) fail("read", EPROTO);
}
