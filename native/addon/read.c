/*
 * Reads a frame, an exact number of bytes, or everything, under a deadline, in the operation's thread.
 * Never takes a byte beyond what was asked: what follows belongs to the tool. The length that a peer claims is
 * compared with the maximum before anything is allocated for it.
 * Source: recv(2) MSG_DONTWAIT; the frame is a four-byte big-endian length and its body.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "functions.h"
#include "operation.h"
#include "value.h"

enum { PREFIX_BYTES = 4 };

/* Bytes read, 0 at the end of the stream, -1 = failed. A pipe is read only when readable: that does not block. */
static ssize_t read_some(struct operation *operation, uint8_t *into, size_t room) {
  for (;;) {
    if (!wait_for(operation, POLLIN, "recv")) return -1;
    ssize_t got = operation->is_socket ? recv(operation->fd, into, room, MSG_DONTWAIT)
                                       : read(operation->fd, into, room);
    if (got >= 0) return got;
    if (errno != EAGAIN && errno != EINTR) {
      fail_call(operation, "recv");
      return -1;
    }
  }
}

/* As many as wanted, or fewer at the end of the stream; check failed. */
static size_t read_up_to(struct operation *operation, uint8_t *into, size_t wanted) {
  size_t done = 0;
  while (done < wanted) {
    ssize_t got = read_some(operation, into + done, wanted - done);
    if (got <= 0) break;
    done += (size_t)got;
  }
  return done;
}

static void fail_short(struct operation *operation, size_t got, size_t wanted) {
  operation->failed = true;
  failure_of_rule(&operation->failure, "ETRUNC", "recv", "stream ended inside: expected %zu bytes, got %zu", wanted,
                  got);
}

static void fail_long(struct operation *operation, const char *got) {
  operation->failed = true;
  failure_of_rule(&operation->failure, "EMSGSIZE", "recv", "too long: expected at most %zu bytes, got %s",
                  operation->maximum, got);
}

static bool make_room(struct operation *operation, size_t bytes) {
  operation->bytes = malloc(bytes > 0 ? bytes : 1);
  if (operation->bytes != NULL) return true;
  fail_call(operation, "malloc");
  return false;
}

static void read_body(struct operation *operation, size_t bytes) {
  if (!make_room(operation, bytes)) return;
  operation->length = read_up_to(operation, operation->bytes, bytes);
  if (!operation->failed && operation->length < bytes) fail_short(operation, operation->length, bytes);
}

static void run_read_exact(struct operation *operation) {
  read_body(operation, operation->maximum);
}

static void run_read_frame(struct operation *operation) {
  uint8_t prefix[PREFIX_BYTES];
  size_t got = read_up_to(operation, prefix, PREFIX_BYTES);
  if (operation->failed) return;
  operation->ended = got == 0;
  if (operation->ended) return;
  if (got < PREFIX_BYTES) {
    fail_short(operation, got, PREFIX_BYTES);
    return;
  }
  size_t body = (size_t)prefix[0] << 24 | (size_t)prefix[1] << 16 | (size_t)prefix[2] << 8 | prefix[3];
  if (body > operation->maximum) {
    fail_long(operation, "a longer frame");
    return;
  }
  read_body(operation, body);
}

/* One byte of room beyond the maximum tells "just fits" from "too long". Untouched room costs nothing. */
static void run_read_to_end(struct operation *operation) {
  if (!make_room(operation, operation->maximum + 1)) return;
  operation->length = read_up_to(operation, operation->bytes, operation->maximum + 1);
  if (operation->failed) return;
  if (operation->length > operation->maximum) {
    fail_long(operation, "more");
    return;
  }
  uint8_t *fitted = realloc(operation->bytes, operation->length > 0 ? operation->length : 1);
  if (fitted != NULL) operation->bytes = fitted;
}

static void run_await_readable(struct operation *operation) {
  (void)wait_for(operation, POLLIN, "poll");
}

static napi_value read_result(napi_env env, struct operation *operation) {
  napi_value nothing;
  if (operation->ended) {
    REQUIRE(env, napi_get_null(env, &nothing));
    return nothing;
  }
  uint8_t *bytes = operation->bytes;
  operation->bytes = NULL;
  return owned_bytes(env, bytes, operation->length);
}

static napi_value no_result(napi_env env, struct operation *operation) {
  (void)operation;
  return undefined_value(env);
}

static napi_value start_read(napi_env env, napi_callback_info info, void (*run)(struct operation *operation)) {
  napi_value arguments[3];
  int fd = -1;
  int maximum = 0;
  if (!take_arguments(env, info, 3, arguments) || !take_int(env, arguments[0], &fd) ||
      !take_int(env, arguments[1], &maximum)) {
    return NULL;
  }
  struct operation *operation = new_operation(env);
  if (operation == NULL) return NULL;
  operation->run = run;
  operation->result = read_result;
  operation->maximum = (size_t)maximum;
  if (!take_bigint(env, arguments[2], &operation->deadline_boot_ns) || !take_descriptor(env, operation, fd)) {
    release_operation(operation);
    return NULL;
  }
  return start_operation(env, operation);
}

napi_value native_read_frame(napi_env env, napi_callback_info info) {
  return start_read(env, info, run_read_frame);
}

napi_value native_read_exact(napi_env env, napi_callback_info info) {
  return start_read(env, info, run_read_exact);
}

napi_value native_read_to_end(napi_env env, napi_callback_info info) {
  return start_read(env, info, run_read_to_end);
}

napi_value native_await_readable(napi_env env, napi_callback_info info) {
  napi_value arguments[2];
  int fd = -1;
  if (!take_arguments(env, info, 2, arguments) || !take_int(env, arguments[0], &fd)) return NULL;
  struct operation *operation = new_operation(env);
  if (operation == NULL) return NULL;
  operation->run = run_await_readable;
  operation->result = no_result;
  if (!take_bigint(env, arguments[1], &operation->deadline_boot_ns) || !take_descriptor(env, operation, fd)) {
    release_operation(operation);
    return NULL;
  }
  return start_operation(env, operation);
}
