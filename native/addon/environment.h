/*
 * What the addon keeps for each JavaScript environment, so that worker threads never share state.
 * Never a global. Source: Node-API, "Environment life cycle APIs".
 */
#ifndef CHIO_ENVIRONMENT_H
#define CHIO_ENVIRONMENT_H

#include <node_api.h>
#include <stddef.h>

struct operation;

/* What one JavaScript environment (main thread or worker) owns. There is no other state in the addon. */
struct environment {
  napi_env env;
  napi_threadsafe_function settle;
  struct operation *operations;
  size_t running;
};

bool make_environment(napi_env env);
struct environment *environment_of(napi_env env);
/* Counts a running operation in and out: the environment stays alive only while one runs. */
bool hold_environment(napi_env env, struct environment *environment);
void leave_environment(napi_env env, struct environment *environment);
void forget_operation(struct operation *operation);

/* Given by operation.c. */
void join_operations(struct environment *environment);
void settle_operation(napi_env env, napi_value function, void *context, void *data);

#endif
