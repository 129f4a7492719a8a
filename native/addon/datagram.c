/*
 * Sends one datagram to an abstract Unix name, at once or not at all. A name of the file system is not its business:
 * the service manager's ordinary socket is reached through a package that cannot do abstract names.
 * Source: unix(7) "abstract socket address", sendto(2), sd_notify(3) "Notes".
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "failure.h"
#include "functions.h"
#include "value.h"

static ssize_t send_to(int fd, const struct sockaddr_un *address, socklen_t length, const uint8_t *payload, size_t bytes) {
  const struct sockaddr *to = (const struct sockaddr *)address;
  ssize_t sent = sendto(fd, payload, bytes, MSG_NOSIGNAL | MSG_DONTWAIT, to, length);
  while (sent < 0 && errno == EINTR) sent = sendto(fd, payload, bytes, MSG_NOSIGNAL | MSG_DONTWAIT, to, length);
  return sent;
}

/* The name follows a NUL, and the address is exactly as long: padding would be part of another name. */
napi_value native_send_datagram(napi_env env, napi_callback_info info) {
  napi_value arguments[2];
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  const uint8_t *payload = NULL;
  size_t bytes = 0;
  if (!take_arguments(env, info, 2, arguments) ||
      !take_text(env, arguments[0], address.sun_path + 1, sizeof address.sun_path - 1) ||
      !take_bytes(env, arguments[1], &payload, &bytes)) {
    return NULL;
  }
  size_t name = strnlen(address.sun_path + 1, sizeof address.sun_path - 1);
  socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + name);
  int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return throw_call(env, "socket");
  ssize_t sent = send_to(fd, &address, length, payload, bytes);
  int number = errno;
  (void)close(fd);
  errno = number;
  return sent < 0 ? throw_call(env, "sendto") : undefined_value(env);
}
