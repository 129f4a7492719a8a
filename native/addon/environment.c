/*
 * The addon's state for one JavaScript environment, and its end: at teardown every thread is woken and joined
 * before Node frees what the threads would report to. Never keeps a process alive without a running operation.
 * Source: Node-API napi_set_instance_data, napi_add_env_cleanup_hook, thread-safe functions.
 */
#include "environment.h"

#include <errno.h>
#include <stdlib.h>

#include "failure.h"
#include "operation.h"

static void free_environment(napi_env env, void *data, void *hint) {
  (void)env;
  (void)hint;
  free(data);
}

static void end_environment(void *data) {
  join_operations(data);
  join_retired(data, true);
}

static napi_status make_settle(napi_env env, struct environment *environment) {
  napi_value name;
  napi_status status = napi_create_string_utf8(env, "chio-operation", NAPI_AUTO_LENGTH, &name);
  if (status != napi_ok) return status;
  status = napi_create_threadsafe_function(env, NULL, NULL, name, 0, 1, NULL, NULL, NULL, settle_operation,
                                           &environment->settle);
  if (status != napi_ok) return status;
  return napi_unref_threadsafe_function(env, environment->settle);
}

bool make_environment(napi_env env) {
  struct environment *environment = calloc(1, sizeof *environment);
  if (environment == NULL) return false;
  environment->env = env;
  if (napi_set_instance_data(env, environment, free_environment, NULL) != napi_ok) {
    free(environment);
    return false;
  }
  /* Hooks run last in, first out: ours comes before the one that Node adds for the thread-safe function. */
  return make_settle(env, environment) == napi_ok &&
         napi_add_env_cleanup_hook(env, end_environment, environment) == napi_ok;
}

struct environment *environment_of(napi_env env) {
  void *data = NULL;
  return napi_get_instance_data(env, &data) == napi_ok ? data : NULL;
}

bool hold_environment(napi_env env, struct environment *environment) {
  if (environment->running == 0 && napi_ref_threadsafe_function(env, environment->settle) != napi_ok) {
    (void)throw_status(env);
    return false;
  }
  environment->running++;
  return true;
}

void leave_environment(napi_env env, struct environment *environment) {
  environment->running--;
  if (environment->running == 0) (void)napi_unref_threadsafe_function(env, environment->settle);
}

void forget_operation(struct operation *operation) {
  struct operation **link = &operation->environment->operations;
  while (*link != NULL && *link != operation) link = &(*link)->next;
  if (*link == operation) *link = operation->next;
}

void join_retired(struct environment *environment, bool wait) {
  size_t kept = 0;
  for (size_t index = 0; index < environment->retired_count; index++) {
    pthread_t thread = environment->retired[index];
    int outcome = wait ? pthread_join(thread, NULL) : pthread_tryjoin_np(thread, NULL);
    if (outcome == EBUSY) environment->retired[kept++] = thread;
  }
  environment->retired_count = kept;
}

void retire_thread(struct environment *environment, pthread_t thread) {
  join_retired(environment, environment->retired_count == OPERATIONS_MAXIMUM);
  environment->retired[environment->retired_count++] = thread;
}
