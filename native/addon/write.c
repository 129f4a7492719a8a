/*
 * Writes all bytes under a deadline, in the operation's thread. Never sets O_NONBLOCK, which the tool would inherit
 * with the shared description, and never raises SIGPIPE.
 * Source: send(2) MSG_DONTWAIT, MSG_NOSIGNAL; pipe(7) for PIPE_BUF.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "functions.h"
#include "operation.h"
#include "value.h"

/* A writable pipe takes PIPE_BUF bytes without blocking, and promises no more. */
static ssize_t write_some(const struct operation *operation, const uint8_t *bytes, size_t length) {
  if (operation->is_socket) return send(operation->fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
  return write(operation->fd, bytes, length < PIPE_BUF ? length : PIPE_BUF);
}

static void run_write(struct operation *operation) {
  for (size_t done = 0; done < operation->length;) {
    if (!wait_for(operation, POLLOUT, "send")) return;
    ssize_t sent = write_some(operation, operation->bytes + done, operation->length - done);
    if (sent >= 0) {
      done += (size_t)sent;
    } else if (errno != EAGAIN && errno != EINTR) {
      fail_call(operation, "send");
      return;
    }
  }
}

static napi_value written(napi_env env, struct operation *operation) {
  (void)operation;
  return undefined_value(env);
}

/* A copy: JavaScript may change its bytes while the thread sends. */
static bool copy_bytes(napi_env env, struct operation *operation, napi_value value) {
  const uint8_t *bytes = NULL;
  if (!take_bytes(env, value, &bytes, &operation->length)) return false;
  operation->bytes = malloc(operation->length > 0 ? operation->length : 1);
  if (operation->bytes == NULL) {
    (void)throw_call(env, "malloc");
    return false;
  }
  if (operation->length > 0) memcpy(operation->bytes, bytes, operation->length);
  return true;
}

napi_value native_write_fully(napi_env env, napi_callback_info info) {
  napi_value arguments[3];
  int fd = -1;
  if (!take_arguments(env, info, 3, arguments) || !take_int(env, arguments[0], &fd)) return NULL;
  struct operation *operation = new_operation(env);
  if (operation == NULL) return NULL;
  operation->run = run_write;
  operation->result = written;
  if (!take_bigint(env, arguments[2], &operation->deadline_boot_ns) || !copy_bytes(env, operation, arguments[1]) ||
      !take_descriptor(env, operation, fd)) {
    release_operation(operation);
    return NULL;
  }
  return start_operation(env, operation);
}
