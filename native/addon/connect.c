/*
 * Connects a Unix stream under a deadline, in the operation's thread. The result is blocking, close-on-exec and has
 * no timeout option: whoever inherits it can simply read and write.
 * A full backlog answers EAGAIN at once on a non-blocking socket and cannot be polled for: it is asked again.
 * Source: connect(2), unix(7).
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "functions.h"
#include "operation.h"
#include "value.h"

static const int64_t BACKLOG_PAUSE_NS = 2000000;

static bool make_blocking(int fd) {
  int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) == 0;
}

static void run_connect(struct operation *operation) {
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) {
    fail_call(operation, "socket");
    return;
  }
  operation->fd = fd;
  while (connect(fd, (const struct sockaddr *)&operation->address, sizeof operation->address) != 0) {
    if (errno != EAGAIN && errno != EINTR) {
      fail_call(operation, "connect");
      return;
    }
    if (!pause_for(operation, BACKLOG_PAUSE_NS, "connect")) return;
  }
  if (!make_blocking(fd)) fail_call(operation, "fcntl");
}

static napi_value connected(napi_env env, struct operation *operation) {
  return int_value(env, operation->fd);
}

napi_value native_connect_unix(napi_env env, napi_callback_info info) {
  napi_value arguments[2];
  if (!take_arguments(env, info, 2, arguments)) return NULL;
  struct operation *operation = new_operation(env);
  if (operation == NULL) return NULL;
  operation->run = run_connect;
  operation->result = connected;
  operation->address.sun_family = AF_UNIX;
  if (!take_text(env, arguments[0], operation->address.sun_path, sizeof operation->address.sun_path) ||
      !take_bigint(env, arguments[1], &operation->deadline_boot_ns)) {
    release_operation(operation);
    return NULL;
  }
  return start_operation(env, operation);
}
