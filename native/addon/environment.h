/*
 * What the addon keeps for each JavaScript environment, so that worker threads never share state.
 * Never a global. Source: Node-API, "Environment life cycle APIs".
 */
#ifndef CHIO_ENVIRONMENT_H
#define CHIO_ENVIRONMENT_H

#include <node_api.h>
#include <pthread.h>
#include <stddef.h>

struct operation;

/* Enough for the connections of one host; more at once is a caller that does not wait for its answers. */
enum { OPERATIONS_MAXIMUM = 64 };

/* What one JavaScript environment (main thread or worker) owns. There is no other state in the addon. */
struct environment {
  napi_env env;
  napi_threadsafe_function settle;
  struct operation *operations;
  size_t running;
  /* Threads that have reported and are about to end: joined later, so that the event loop never waits for them. */
  pthread_t retired[OPERATIONS_MAXIMUM];
  size_t retired_count;
};

bool make_environment(napi_env env);
struct environment *environment_of(napi_env env);
/* Counts a running operation in and out: the environment stays alive only while one runs. */
bool hold_environment(napi_env env, struct environment *environment);
void leave_environment(napi_env env, struct environment *environment);

/* Joins what has ended; all of it when told to wait. */
void join_retired(struct environment *environment, bool wait);
void retire_thread(struct environment *environment, pthread_t thread);

#endif
