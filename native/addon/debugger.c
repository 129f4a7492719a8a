/*
 * Takes away the signal at which Node opens its debugger: a port of the machine where whoever connects, of any uid,
 * runs code in this process. Node's own handler stands before any script runs, and a listener in JavaScript runs beside
 * it. Programs that Node starts get the default again.
 * Source: sigaction(2); node(1) "signal events", SIGUSR1.
 */
#include <signal.h>
#include <stddef.h>

#include "failure.h"
#include "functions.h"
#include "value.h"

napi_value native_ignore_debugger_signal(napi_env env, napi_callback_info info) {
  struct sigaction ignore = {.sa_handler = SIG_IGN};
  struct sigaction now = {.sa_handler = SIG_DFL};
  struct failure failure = {0};
  (void)info;
  if (sigaction(SIGUSR1, &ignore, NULL) != 0) return throw_call(env, "sigaction");
  if (sigaction(SIGUSR1, NULL, &now) != 0) return throw_call(env, "sigaction");
  if (now.sa_handler == SIG_IGN) return undefined_value(env);
  failure_of_rule(&failure, "EPERM", "sigaction", "SIGUSR1: expected it ignored, got a handler");
  return failure_throw(env, &failure);
}
