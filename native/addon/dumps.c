/*
 * Takes core dumps, ptrace and same-uid reading of /proc/PID away from this process, and verifies it.
 * Source: prctl(2) PR_SET_DUMPABLE, getrlimit(2) RLIMIT_CORE.
 */
#include <sys/prctl.h>
#include <sys/resource.h>

#include "failure.h"
#include "functions.h"
#include "value.h"

/*
 * One byte, not none: the kernel writes no file for so little, and unlike for 0 it starts no core_pattern program
 * either. Children inherit it, and a cage's tool is dumpable. An inherited hard limit of 0 cannot be raised.
 */
static int limit_core(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_CORE, &limit) != 0) return -1;
  if (limit.rlim_max > 1) limit.rlim_max = 1;
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(RLIMIT_CORE, &limit);
}

napi_value native_forbid_dumps(napi_env env, napi_callback_info info) {
  struct rlimit now = {RLIM_INFINITY, RLIM_INFINITY};
  struct failure failure = {0};
  (void)info;
  if (limit_core() != 0) return throw_call(env, "setrlimit");
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return throw_call(env, "prctl");
  if (getrlimit(RLIMIT_CORE, &now) != 0) return throw_call(env, "getrlimit");
  int dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
  if (dumpable == 0 && now.rlim_cur <= 1 && now.rlim_max <= 1) return undefined_value(env);
  failure_of_rule(&failure, "EPERM", "prctl", "process still dumpable: expected 0, got %d", dumpable);
  return failure_throw(env, &failure);
}
