/*
 * Receives one message of a seqpacket socket under a deadline, with its sender's credentials when asked for.
 * Descriptors are not expected here: a message that carries any is refused and they are closed.
 * Source: unix(7) SO_PASSCRED; recvmsg(2).
 */
#include "message.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "functions.h"
#include "operation.h"
#include "value.h"

static void run_receive_message(struct operation *operation) {
  struct received *received = &operation->received;
  int outcome = 0;
  operation->bytes = malloc(operation->maximum);
  if (operation->bytes == NULL) {
    fail_call(operation, "malloc");
    return;
  }
  while (outcome == 0) {
    if (!wait_for(operation, POLLIN, "recvmsg")) return;
    outcome = receive_message(operation->fd, operation->bytes, operation->maximum, received, &operation->failure);
  }
  operation->failed = outcome < 0 || require_descriptors(received, 0, &operation->failure) != 0;
  /* An empty message looks like the end of the stream, unless credentials came with it. */
  operation->ended = received->length == 0 && !received->has_credentials;
}

static bool set_credentials(napi_env env, napi_value result, const struct received *received) {
  napi_value credentials;
  if (!received->has_credentials) {
    return napi_get_null(env, &credentials) == napi_ok &&
           napi_set_named_property(env, result, "credentials", credentials) == napi_ok;
  }
  return napi_create_object(env, &credentials) == napi_ok &&
         set_int64(env, credentials, "pid", received->credentials.pid) &&
         set_int64(env, credentials, "uid", received->credentials.uid) &&
         set_int64(env, credentials, "gid", received->credentials.gid) &&
         napi_set_named_property(env, result, "credentials", credentials) == napi_ok;
}

napi_value message_value(napi_env env, uint8_t *payload, const struct received *received) {
  napi_value result;
  napi_value bytes = owned_bytes(env, payload, received->length);
  if (bytes == NULL) return NULL;
  REQUIRE(env, napi_create_object(env, &result));
  REQUIRE(env, napi_set_named_property(env, result, "payload", bytes));
  return set_credentials(env, result, received) ? result : throw_status(env);
}

static napi_value message_result(napi_env env, struct operation *operation) {
  napi_value nothing;
  if (operation->ended) {
    REQUIRE(env, napi_get_null(env, &nothing));
    return nothing;
  }
  uint8_t *payload = operation->bytes;
  operation->bytes = NULL;
  return message_value(env, payload, &operation->received);
}

napi_value native_receive_message(napi_env env, napi_callback_info info) {
  napi_value arguments[3];
  int fd = -1;
  int maximum = 0;
  if (!take_arguments(env, info, 3, arguments) || !take_int(env, arguments[0], &fd) ||
      !take_int(env, arguments[1], &maximum)) {
    return NULL;
  }
  struct operation *operation = new_operation(env);
  if (operation == NULL) return NULL;
  operation->run = run_receive_message;
  operation->result = message_result;
  operation->maximum = (size_t)maximum;
  if (!take_bigint(env, arguments[2], &operation->deadline_boot_ns) || !take_descriptor(env, operation, fd)) {
    release_operation(operation);
    return NULL;
  }
  return start_operation(env, operation);
}
