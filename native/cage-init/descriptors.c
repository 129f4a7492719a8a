/*
 * Which descriptors stay. Everything that is not named is closed: what the launcher inherited from its own parent
 * passes through bwrap, and ends here.
 * Source: close_range(2), dup3(2).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cage-init.h"

static void close_between(unsigned int first, unsigned int last) {
  if (first <= last && syscall(SYS_close_range, first, last, 0u) != 0) fail("close_range", errno);
}

/* `kept` ascends strictly. */
void close_all_but(const int *kept, size_t count) {
  unsigned int next = 0;
  for (size_t i = 0; i < count; i++) {
    if (kept[i] > 0) close_between(next, (unsigned int)kept[i] - 1);
    next = (unsigned int)kept[i] + 1;
  }
  close_between(next, ~0u);
}

/* Flags: 0 or O_CLOEXEC, which hold for `to` also when it is `from` already. */
void move_descriptor(int from, int to, int flags) {
  if (from == to) {
    if (fcntl(to, F_SETFD, flags == O_CLOEXEC ? FD_CLOEXEC : 0) != 0) fail("fcntl", errno);
    return;
  }
  if (dup3(from, to, flags) < 0) fail("dup3", errno);
  close(from);
}
