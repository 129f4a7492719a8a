/*
 * Says what a socket is and whether its peer has gone. Reads and sets options only; moves no byte.
 * Source: socket(7), unix(7), poll(2), getpeername(2).
 */
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "failure.h"
#include "functions.h"
#include "value.h"

union address {
  struct sockaddr any;
  struct sockaddr_un local;
  struct sockaddr_storage room;
};

napi_value native_hung_up(napi_env env, napi_callback_info info) {
  napi_value arguments[1];
  int fd = -1;
  if (!take_arguments(env, info, 1, arguments) || !take_int(env, arguments[0], &fd)) return NULL;
  struct pollfd state = {.fd = fd, .events = 0, .revents = 0};
  int ready = poll(&state, 1, 0);
  while (ready < 0 && errno == EINTR) ready = poll(&state, 1, 0);
  if (ready > 0 && (state.revents & POLLNVAL) != 0) {
    errno = EBADF;
    ready = -1;
  }
  if (ready < 0) return throw_call(env, "poll");
  return bool_value(env, (state.revents & (POLLHUP | POLLERR)) != 0);
}

napi_value native_set_pass_credentials(napi_env env, napi_callback_info info) {
  napi_value arguments[2];
  int fd = -1;
  bool on = false;
  if (!take_arguments(env, info, 2, arguments) || !take_int(env, arguments[0], &fd)) return NULL;
  REQUIRE(env, napi_get_value_bool(env, arguments[1], &on));
  int value = on ? 1 : 0;
  if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &value, sizeof value) != 0) return throw_call(env, "setsockopt");
  return undefined_value(env);
}

static bool read_option(int fd, int option, int *value) {
  socklen_t length = sizeof *value;
  return getsockopt(fd, SOL_SOCKET, option, value, &length) == 0;
}

/* A file's name ends at its NUL; an abstract one begins with a NUL and is as long as the kernel says. */
static bool set_path(napi_env env, napi_value result, const union address *address, socklen_t length) {
  size_t begin = offsetof(struct sockaddr_un, sun_path);
  napi_value path;
  if (address->any.sa_family != AF_UNIX || length <= begin || length > sizeof address->local) {
    return napi_get_null(env, &path) == napi_ok &&
           napi_set_named_property(env, result, "path", path) == napi_ok;
  }
  const char *name = address->local.sun_path;
  size_t bytes = name[0] == '\0' ? length - begin : strnlen(name, length - begin);
  return napi_create_string_utf8(env, name, bytes, &path) == napi_ok &&
         napi_set_named_property(env, result, "path", path) == napi_ok;
}

static bool is_named(const union address *address, socklen_t length) {
  return address->any.sa_family == AF_UNIX && length > offsetof(struct sockaddr_un, sun_path);
}

static napi_value describe(napi_env env, int fd, int domain, int type, int listening) {
  union address own = {0};
  union address peer = {0};
  socklen_t own_length = sizeof own;
  socklen_t peer_length = sizeof peer;
  napi_value result;
  if (getsockname(fd, &own.any, &own_length) != 0) return throw_call(env, "getsockname");
  bool connected = getpeername(fd, &peer.any, &peer_length) == 0;
  bool by_peer = connected && !is_named(&own, own_length);
  REQUIRE(env, napi_create_object(env, &result));
  if (!set_int64(env, result, "domain", domain) || !set_int64(env, result, "type", type) ||
      !set_bool(env, result, "listening", listening != 0) || !set_bool(env, result, "connected", connected) ||
      !set_path(env, result, by_peer ? &peer : &own, by_peer ? peer_length : own_length)) {
    return throw_status(env);
  }
  return result;
}

napi_value native_socket_info(napi_env env, napi_callback_info info) {
  napi_value arguments[1];
  int fd = -1;
  int domain = 0;
  int type = 0;
  int listening = 0;
  if (!take_arguments(env, info, 1, arguments) || !take_int(env, arguments[0], &fd)) return NULL;
  if (!read_option(fd, SO_DOMAIN, &domain) || !read_option(fd, SO_TYPE, &type) ||
      !read_option(fd, SO_ACCEPTCONN, &listening)) {
    return throw_call(env, "getsockopt");
  }
  return describe(env, fd, domain, type, listening);
}
