/*
 * Resource limits, no_new_privs and the seccomp filter. Soft and hard limit are one value, so nothing inside can
 * raise it again. A filter that the kernel refuses ends the cage: there is no launch without it.
 * Source: setrlimit(2), prctl(2) PR_SET_NO_NEW_PRIVS, seccomp(2).
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cage-init.h"

/* A launcher may live under a lower hard limit than the plan's (its own core limit is 0): the lower one holds. */
static void set_limit(__rlimit_resource_t resource, struct rlimit wanted) {
  struct rlimit current;
  if (getrlimit(resource, &current) != 0) fail("getrlimit", errno);
  if (current.rlim_max < wanted.rlim_max) wanted = (struct rlimit){current.rlim_max, current.rlim_max};
  if (setrlimit(resource, &wanted) != 0) fail("setrlimit", errno);
}

/* The descriptor limit comes last and alone: it would forbid the slots that are still to be filled. */
void set_limits(const struct plan *plan, bool descriptors) {
  for (size_t i = 0; i < plan->limit_count; i++) {
    const struct limit *limit = &plan->limits[i];
    if ((limit->resource == RLIMIT_NOFILE) != descriptors) continue;
    set_limit((__rlimit_resource_t)limit->resource, limit->value);
  }
}

void refuse_new_privileges(void) {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail("prctl PR_SET_NO_NEW_PRIVS", errno);
}

/* Returns the listener for the calls that the filter puts to it, or 0 without one. */
int install_filter(const struct filter_program *filter, bool with_listener) {
  struct sock_fprog program = {.len = filter->count, .filter = (struct sock_filter *)filter->instructions};
  unsigned int flags = with_listener ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0;
  long result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
  if (result < 0) fail("seccomp", errno);
  return (int)result;
}
