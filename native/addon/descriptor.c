/*
 * Makes, duplicates, half-closes and closes descriptors. Everything made here is close-on-exec and blocking.
 * Never decides whether a descriptor may be closed: the caller owns what it names.
 * Source: close(2), fcntl(2), open(2), pipe(2), shutdown(2), socketpair(2).
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "failure.h"
#include "functions.h"
#include "operation.h"
#include "value.h"

enum { PATH_ROOM = 4096 };

napi_value native_close_descriptor(napi_env env, napi_callback_info info) {
  napi_value arguments[1];
  int fd = -1;
  if (!take_arguments(env, info, 1, arguments) || !take_int(env, arguments[0], &fd)) return NULL;
  cancel_operations(env, fd); /* a thread that waits on a duplicate must not keep the stream open */
  /* Linux has released the number even when close reports EINTR: never closed twice. */
  if (close(fd) != 0 && errno != EINTR) return throw_call(env, "close");
  return undefined_value(env);
}

napi_value native_duplicate_descriptor(napi_env env, napi_callback_info info) {
  napi_value arguments[2];
  int fd = -1;
  int minimum = 0;
  if (!take_arguments(env, info, 2, arguments) || !take_int(env, arguments[0], &fd) ||
      !take_int(env, arguments[1], &minimum)) {
    return NULL;
  }
  int duplicate = fcntl(fd, F_DUPFD_CLOEXEC, minimum);
  return duplicate >= 0 ? int_value(env, duplicate) : throw_call(env, "fcntl");
}

napi_value native_open_directory(napi_env env, napi_callback_info info) {
  napi_value arguments[1];
  char path[PATH_ROOM];
  if (!take_arguments(env, info, 1, arguments) || !take_text(env, arguments[0], path, sizeof path)) return NULL;
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  return fd >= 0 ? int_value(env, fd) : throw_call(env, "open");
}

napi_value native_socket_pair(napi_env env, napi_callback_info info) {
  napi_value arguments[1];
  int type = 0;
  int pair[2] = {-1, -1};
  if (!take_arguments(env, info, 1, arguments) || !take_int(env, arguments[0], &type)) return NULL;
  if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair) != 0) return throw_call(env, "socketpair");
  napi_value result = int_array(env, pair, 2);
  if (result != NULL) return result;
  (void)close(pair[0]);
  (void)close(pair[1]);
  return NULL;
}

napi_value native_pipe(napi_env env, napi_callback_info info) {
  int ends[2] = {-1, -1};
  (void)info;
  if (pipe2(ends, O_CLOEXEC) != 0) return throw_call(env, "pipe2");
  napi_value result = int_array(env, ends, 2);
  if (result != NULL) return result;
  (void)close(ends[0]);
  (void)close(ends[1]);
  return NULL;
}

napi_value native_shutdown_socket(napi_env env, napi_callback_info info) {
  napi_value arguments[2];
  int fd = -1;
  int how = 0;
  if (!take_arguments(env, info, 2, arguments) || !take_int(env, arguments[0], &fd) ||
      !take_int(env, arguments[1], &how)) {
    return NULL;
  }
  return shutdown(fd, how) == 0 ? undefined_value(env) : throw_call(env, "shutdown");
}
