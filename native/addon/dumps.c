/*
 * Takes core dumps, ptrace and same-uid reading of /proc/PID away from this process, and verifies it.
 * Source: prctl(2) PR_SET_DUMPABLE, getrlimit(2) RLIMIT_CORE.
 */
#include <sys/prctl.h>
#include <sys/resource.h>

#include "failure.h"
#include "functions.h"
#include "value.h"

napi_value native_forbid_dumps(napi_env env, napi_callback_info info) {
  const struct rlimit none = {0, 0};
  struct rlimit now = {1, 1};
  struct failure failure = {0};
  (void)info;
  if (setrlimit(RLIMIT_CORE, &none) != 0) return throw_call(env, "setrlimit");
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return throw_call(env, "prctl");
  if (getrlimit(RLIMIT_CORE, &now) != 0) return throw_call(env, "getrlimit");
  int dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
  if (dumpable == 0 && now.rlim_cur == 0 && now.rlim_max == 0) return undefined_value(env);
  failure_of_rule(&failure, "EPERM", "prctl", "process still dumpable: expected 0, got %d", dumpable);
  return failure_throw(env, &failure);
}
