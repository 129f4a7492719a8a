/*
 * The addon's state for one JavaScript environment, the threads that ended in it, and what keeps it alive.
 * Never keeps a process alive without a running operation.
 * Source: Node-API napi_set_instance_data, thread-safe functions; pthread_tryjoin_np(3).
 */
#include "environment.h"

#include <errno.h>
#include <stdlib.h>

#include "failure.h"

static void free_environment(napi_env env, void *data, void *hint) {
  (void)env;
  (void)hint;
  free(data);
}

bool make_environment(napi_env env) {
  struct environment *environment = calloc(1, sizeof *environment);
  if (environment == NULL) return false;
  environment->env = env;
  if (napi_set_instance_data(env, environment, free_environment, NULL) != napi_ok) {
    free(environment);
    return false;
  }
  return true;
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
