/*
 * Runs one blocking operation in one thread of its own, bounded in number, and settles its promise. At the end of
 * the environment every thread is woken and joined before Node frees what the threads would report to.
 * Not libuv's pool: its four threads would all hang on four stalled peers. A thread costs some ten microseconds.
 * Attack: a peer that stalls must not hold the event loop, the process, or our descriptor longer than the deadline.
 * Source: Node-API thread-safe functions and cleanup hooks; eventfd(2), pthread_create(3).
 */
#include "operation.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "environment.h"

/* The deepest call holds one control buffer and one message of descriptors. */
enum { STACK_BYTES = 128 * 1024 };

static void close_kept(int *fd) {
  if (*fd >= 0) (void)close(*fd);
  *fd = -1;
}

struct operation *new_operation(napi_env env) {
  struct operation *operation = calloc(1, sizeof *operation);
  if (operation == NULL) {
    (void)throw_call(env, "calloc");
    return NULL;
  }
  operation->named_fd = -1;
  operation->fd = -1;
  operation->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (operation->wake_fd >= 0) return operation;
  (void)throw_call(env, "eventfd");
  free(operation);
  return NULL;
}

void release_operation(struct operation *operation) {
  close_kept(&operation->fd);
  close_kept(&operation->wake_fd);
  close_received(&operation->received);
  free(operation->bytes);
  free(operation);
}

bool take_descriptor(napi_env env, struct operation *operation, int fd) {
  struct stat state;
  operation->named_fd = fd;
  operation->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
  if (operation->fd < 0 || fstat(operation->fd, &state) != 0) {
    (void)throw_call(env, operation->fd < 0 ? "fcntl" : "fstat");
    return false;
  }
  operation->is_socket = S_ISSOCK(state.st_mode);
  return true;
}

static void *run_thread(void *argument) {
  struct operation *operation = argument;
  operation->run(operation);
  /* A duplicate that stays open would delay the peer's end of stream. */
  if (operation->named_fd >= 0) close_kept(&operation->fd);
  /* Fails only while the environment goes down, which then joins this thread and frees what it finds. */
  (void)napi_call_threadsafe_function(operation->environment->settle, operation, napi_tsfn_nonblocking);
  return NULL;
}

static int create_thread(struct operation *operation) {
  pthread_attr_t attributes;
  sigset_t all, before;
  int number = pthread_attr_init(&attributes);
  if (number != 0) return number;
  (void)pthread_attr_setstacksize(&attributes, STACK_BYTES < PTHREAD_STACK_MIN ? PTHREAD_STACK_MIN : STACK_BYTES);
  /* Signals belong to Node's own threads. */
  (void)sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before);
  number = pthread_create(&operation->thread, &attributes, run_thread, operation);
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  (void)pthread_attr_destroy(&attributes);
  return number;
}

static bool launch(napi_env env, struct environment *environment, struct operation *operation) {
  if (environment->running >= OPERATIONS_MAXIMUM) {
    struct failure failure = {0};
    failure_of_rule(&failure, "EAGAIN", "pthread_create", "expected fewer than %d operations at once", OPERATIONS_MAXIMUM);
    (void)failure_throw(env, &failure);
    return false;
  }
  if (!hold_environment(env, environment)) return false;
  int number = create_thread(operation);
  if (number == 0) return true;
  leave_environment(env, environment);
  errno = number;
  (void)throw_call(env, "pthread_create");
  return false;
}

napi_value start_operation(napi_env env, struct operation *operation) {
  struct environment *environment = environment_of(env);
  napi_value promise;
  napi_deferred deferred;
  if (environment == NULL || napi_create_promise(env, &deferred, &promise) != napi_ok) {
    release_operation(operation);
    return throw_status(env);
  }
  operation->environment = environment;
  operation->deferred = deferred;
  if (!launch(env, environment, operation)) {
    napi_value error;
    release_operation(operation);
    if (napi_get_and_clear_last_exception(env, &error) != napi_ok) return NULL;
    return napi_reject_deferred(env, deferred, error) == napi_ok ? promise : NULL;
  }
  operation->next = environment->operations;
  environment->operations = operation;
  return promise;
}

static void wake(const struct operation *operation) {
  const uint64_t one = 1;
  ssize_t written = write(operation->wake_fd, &one, sizeof one);
  (void)written; /* a full counter is readable too */
}

void cancel_operations(napi_env env, int fd) {
  struct environment *environment = environment_of(env);
  if (environment == NULL) return;
  for (struct operation *each = environment->operations; each != NULL; each = each->next) {
    if (each->named_fd == fd) wake(each);
  }
}

static void join_operations(struct environment *environment) {
  for (struct operation *each = environment->operations; each != NULL; each = each->next) wake(each);
  for (struct operation *each = environment->operations; each != NULL; each = each->next) {
    (void)pthread_join(each->thread, NULL);
    each->environment = NULL; /* its thread is gone, and soon the environment */
  }
  environment->operations = NULL;
}

static void settle(napi_env env, struct operation *operation) {
  napi_value value = operation->failed ? failure_error(env, &operation->failure) : operation->result(env, operation);
  if (value != NULL && !operation->failed) {
    /* A descriptor that was made is JavaScript's only once it was told. */
    if (napi_resolve_deferred(env, operation->deferred, value) == napi_ok) operation->fd = -1;
    return;
  }
  /* Building the result threw: that exception is the reason, so that no promise stays open. */
  if (value == NULL && napi_get_and_clear_last_exception(env, &value) != napi_ok) return;
  (void)napi_reject_deferred(env, operation->deferred, value);
}

static void forget_operation(struct operation *operation) {
  struct operation **link = &operation->environment->operations;
  while (*link != NULL && *link != operation) link = &(*link)->next;
  if (*link == operation) *link = operation->next;
}

static void settle_operation(napi_env env, napi_value function, void *context, void *data) {
  struct operation *operation = data;
  (void)function;
  (void)context;
  /* Without an env everything is going down: what the operation made is closed, nothing is told. */
  if (env != NULL && operation->environment != NULL) {
    retire_thread(operation->environment, operation->thread);
    forget_operation(operation);
    leave_environment(env, operation->environment);
    close_kept(&operation->wake_fd);
    settle(env, operation);
  }
  release_operation(operation);
}

static void end_operations(void *data) {
  join_operations(data);
  join_retired(data, true);
}

bool accept_operations(napi_env env) {
  struct environment *environment = environment_of(env);
  napi_value name;
  if (environment == NULL) return false;
  if (napi_create_string_utf8(env, "chio-operation", NAPI_AUTO_LENGTH, &name) != napi_ok) return false;
  /* Hooks run last in, first out: ours comes before the one that Node adds for the thread-safe function. */
  return napi_create_threadsafe_function(env, NULL, NULL, name, 0, 1, NULL, NULL, NULL, settle_operation,
                                         &environment->settle) == napi_ok &&
         napi_unref_threadsafe_function(env, environment->settle) == napi_ok &&
         napi_add_env_cleanup_hook(env, end_operations, environment) == napi_ok;
}
