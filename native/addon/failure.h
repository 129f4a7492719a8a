/*
 * How a failure travels from C to JavaScript: code, errno and syscall, as Node's own errors have them.
 * Never carries content of a peer. Source: Node-API, "Error handling".
 */
#ifndef CHIO_FAILURE_H
#define CHIO_FAILURE_H

#include <node_api.h>

/* What went wrong: a system call (number set) or a refusal of ours (code set). */
struct failure {
  int number;
  const char *code;
  const char *call;
  char sentence[200];
};

void failure_of_call(struct failure *failure, const char *call);
__attribute__((format(printf, 4, 5))) void failure_of_rule(struct failure *failure, const char *code,
                                                           const char *call, const char *format, ...);
napi_value failure_error(napi_env env, const struct failure *failure);
napi_value failure_throw(napi_env env, const struct failure *failure);
napi_value throw_call(napi_env env, const char *call);
napi_value throw_status(napi_env env);

/* Every napi_status is checked; a failed one leaves the function with an exception pending. */
#define REQUIRE(env, expression)                      \
  do {                                                \
    if ((expression) != napi_ok) return throw_status(env); \
  } while (0)

#endif
