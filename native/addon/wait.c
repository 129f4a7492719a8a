/*
 * Waits under the operation's absolute deadline. poll's timeout runs on CLOCK_MONOTONIC, which stops while the
 * machine sleeps: the wait is cut into slices of at most a second, and the boot clock is compared after each.
 * Source: poll(2), clock_gettime(2).
 */
#include <errno.h>
#include <poll.h>
#include <time.h>

#include "clock.h"
#include "operation.h"

static const int64_t SLICE_NS = 1000000000;

void fail_call(struct operation *operation, const char *call) {
  operation->failed = true;
  failure_of_call(&operation->failure, call);
}

static int fail_number(struct operation *operation, int number, const char *call) {
  errno = number;
  fail_call(operation, call);
  return -1;
}

/* 1 = the event is there, 0 = the time passed without it, -1 = failed. */
static int wait_once(struct operation *operation, struct pollfd *watched, int64_t at_most_ns, const char *call) {
  int64_t left = operation->deadline_boot_ns - boot_now_ns();
  if (left <= 0) return fail_number(operation, ETIMEDOUT, call);
  if (left > at_most_ns) left = at_most_ns;
  struct pollfd both[2] = {{.fd = operation->wake_fd, .events = POLLIN}, *watched};
  struct timespec timeout = {.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};
  int ready = ppoll(both, 2, &timeout, NULL);
  if (ready < 0) return errno == EINTR ? 0 : fail_number(operation, errno, "poll");
  if (both[0].revents != 0) return fail_number(operation, ECANCELED, call);
  if ((both[1].revents & POLLNVAL) != 0) return fail_number(operation, EBADF, call);
  return both[1].revents != 0 ? 1 : 0;
}

bool wait_for(struct operation *operation, short events, const char *call) {
  struct pollfd watched = {.fd = operation->fd, .events = events};
  int outcome = 0;
  while (outcome == 0) outcome = wait_once(operation, &watched, SLICE_NS, call);
  return outcome == 1;
}

bool pause_for(struct operation *operation, int64_t pause_ns, const char *call) {
  struct pollfd nothing = {.fd = -1, .events = 0};
  return wait_once(operation, &nothing, pause_ns, call) >= 0;
}
