/*
 * Sends and receives descriptors over a Unix socket, at once or not at all: never waits on the event loop's thread.
 * Sends exactly what was asked; hands over exactly what was expected.
 * Source: unix(7) SCM_RIGHTS, sendmsg(2).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "control.h"
#include "failure.h"
#include "functions.h"
#include "message.h"
#include "value.h"

struct outgoing {
  int fd;
  const uint8_t *payload;
  size_t length;
  int descriptors[DESCRIPTORS_MAXIMUM];
  uint32_t count;
};

static bool take_descriptors(napi_env env, napi_value array, struct outgoing *out) {
  if (napi_get_array_length(env, array, &out->count) != napi_ok || out->count > DESCRIPTORS_MAXIMUM) {
    (void)throw_status(env);
    return false;
  }
  for (uint32_t index = 0; index < out->count; index++) {
    napi_value element;
    if (napi_get_element(env, array, index, &element) != napi_ok) {
      (void)throw_status(env);
      return false;
    }
    if (!take_int(env, element, &out->descriptors[index])) return false;
  }
  return true;
}

static ssize_t send_once(const struct outgoing *out) {
  union {
    struct cmsghdr align;
    unsigned char room[CMSG_SPACE(DESCRIPTORS_MAXIMUM * sizeof(int))];
  } control;
  struct iovec part = {.iov_base = (void *)(uintptr_t)out->payload, .iov_len = out->length};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  size_t bytes = out->count * sizeof(int);
  if (out->count > 0) {
    memset(&control, 0, sizeof control);
    message.msg_control = control.room;
    message.msg_controllen = CMSG_SPACE(bytes);
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(bytes);
    memcpy(CMSG_DATA(header), out->descriptors, bytes);
  }
  ssize_t sent = sendmsg(out->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  while (sent < 0 && errno == EINTR) sent = sendmsg(out->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  return sent;
}

napi_value native_send_descriptors(napi_env env, napi_callback_info info) {
  napi_value arguments[3];
  struct outgoing out = {.fd = -1};
  if (!take_arguments(env, info, 3, arguments) || !take_int(env, arguments[0], &out.fd) ||
      !take_bytes(env, arguments[1], &out.payload, &out.length) || !take_descriptors(env, arguments[2], &out)) {
    return NULL;
  }
  ssize_t sent = send_once(&out);
  if (sent < 0) return throw_call(env, "sendmsg");
  if ((size_t)sent == out.length) return undefined_value(env);
  struct failure failure = {0};
  failure_of_rule(&failure, "EMSGSIZE", "sendmsg", "only %zd of %zu bytes fitted: the stream is spent", sent, out.length);
  return failure_throw(env, &failure);
}

static napi_value received_object(napi_env env, uint8_t *payload, struct received *received) {
  napi_value result = message_value(env, payload, received);
  napi_value list = result != NULL ? int_array(env, received->descriptors, received->count) : NULL;
  if (list == NULL) return NULL;
  REQUIRE(env, napi_set_named_property(env, result, "descriptors", list));
  return result;
}

napi_value native_receive_descriptors(napi_env env, napi_callback_info info) {
  napi_value arguments[3];
  struct received received;
  struct failure failure = {0};
  int fd = -1;
  int room = 0;
  int expected = 0;
  if (!take_arguments(env, info, 3, arguments) || !take_int(env, arguments[0], &fd) ||
      !take_int(env, arguments[1], &room) || !take_int(env, arguments[2], &expected)) {
    return NULL;
  }
  uint8_t *payload = malloc((size_t)room);
  if (payload == NULL) return throw_call(env, "malloc");
  if (receive_message(fd, payload, (size_t)room, &received, &failure) != 1 ||
      require_descriptors(&received, (size_t)expected, &failure) != 0) {
    free(payload);
    return failure_throw(env, &failure);
  }
  napi_value result = received_object(env, payload, &received); /* owns the payload */
  if (result == NULL) close_received(&received);
  return result;
}
