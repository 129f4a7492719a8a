/*
 * Carries values between JavaScript and C: numbers, bytes, short texts, small objects.
 * Never guesses: a value of the wrong type is an error status, and the caller returns with the exception pending.
 * Source: Node-API, node_api.h.
 */
#include "value.h"

#include <stdlib.h>
#include <string.h>

#include "failure.h"

/* Below this a copy is cheaper than a finalizer; above it the block itself is handed over. */
enum { COPY_UP_TO_BYTES = 64 * 1024 };

bool take_arguments(napi_env env, napi_callback_info info, size_t count, napi_value *arguments) {
  size_t given = count;
  if (napi_get_cb_info(env, info, &given, arguments, NULL, NULL) == napi_ok && given == count) return true;
  (void)throw_status(env);
  return false;
}

static bool checked(napi_env env, napi_status status) {
  if (status == napi_ok) return true;
  (void)throw_status(env);
  return false;
}

bool take_int(napi_env env, napi_value value, int *number) {
  int32_t taken = 0;
  if (!checked(env, napi_get_value_int32(env, value, &taken))) return false;
  *number = taken;
  return true;
}

bool take_bigint(napi_env env, napi_value value, int64_t *number) {
  bool lossless = false;
  if (!checked(env, napi_get_value_bigint_int64(env, value, number, &lossless))) return false;
  if (!lossless) (void)napi_throw_range_error(env, NULL, "bigint does not fit 64 bits");
  return lossless;
}

bool take_bytes(napi_env env, napi_value value, const uint8_t **bytes, size_t *length) {
  napi_typedarray_type type = napi_int8_array;
  void *data = NULL;
  if (!checked(env, napi_get_typedarray_info(env, value, &type, length, &data, NULL, NULL))) return false;
  if (type != napi_uint8_array) {
    (void)napi_throw_type_error(env, NULL, "expected a Uint8Array");
    return false;
  }
  *bytes = data;
  return true;
}

bool take_text(napi_env env, napi_value value, char *text, size_t room) {
  size_t length = 0;
  if (!checked(env, napi_get_value_string_utf8(env, value, NULL, 0, &length))) return false;
  if (length >= room) {
    (void)napi_throw_range_error(env, NULL, "text is too long");
    return false;
  }
  return checked(env, napi_get_value_string_utf8(env, value, text, room, &length));
}

bool set_int64(napi_env env, napi_value object, const char *name, int64_t number) {
  napi_value value;
  return checked(env, napi_create_int64(env, number, &value)) &&
         checked(env, napi_set_named_property(env, object, name, value));
}

bool set_bool(napi_env env, napi_value object, const char *name, bool truth) {
  napi_value value;
  return checked(env, napi_get_boolean(env, truth, &value)) &&
         checked(env, napi_set_named_property(env, object, name, value));
}

bool set_string(napi_env env, napi_value object, const char *name, const char *text) {
  napi_value value;
  return checked(env, napi_create_string_utf8(env, text, NAPI_AUTO_LENGTH, &value)) &&
         checked(env, napi_set_named_property(env, object, name, value));
}

napi_value int_value(napi_env env, int number) {
  napi_value value;
  REQUIRE(env, napi_create_int32(env, number, &value));
  return value;
}

napi_value bool_value(napi_env env, bool truth) {
  napi_value value;
  REQUIRE(env, napi_get_boolean(env, truth, &value));
  return value;
}

napi_value undefined_value(napi_env env) {
  napi_value value;
  REQUIRE(env, napi_get_undefined(env, &value));
  return value;
}

napi_value int_array(napi_env env, const int *numbers, size_t count) {
  napi_value array;
  REQUIRE(env, napi_create_array_with_length(env, count, &array));
  for (size_t index = 0; index < count; index++) {
    napi_value number;
    REQUIRE(env, napi_create_int32(env, numbers[index], &number));
    REQUIRE(env, napi_set_element(env, array, (uint32_t)index, number));
  }
  return array;
}

static napi_value typed_array(napi_env env, napi_value buffer, size_t length) {
  napi_value array;
  REQUIRE(env, napi_create_typedarray(env, napi_uint8_array, length, buffer, 0, &array));
  return array;
}

napi_value copied_bytes(napi_env env, const uint8_t *bytes, size_t length) {
  napi_value buffer;
  void *data = NULL;
  REQUIRE(env, napi_create_arraybuffer(env, length, &data, &buffer));
  if (length > 0) memcpy(data, bytes, length);
  return typed_array(env, buffer, length);
}

static void free_block(napi_env env, void *data, void *hint) {
  (void)env;
  (void)hint;
  free(data);
}

napi_value owned_bytes(napi_env env, uint8_t *bytes, size_t length) {
  napi_value buffer;
  if (length > COPY_UP_TO_BYTES &&
      napi_create_external_arraybuffer(env, bytes, length, free_block, NULL, &buffer) == napi_ok) {
    return typed_array(env, buffer, length);
  }
  napi_value array = copied_bytes(env, bytes, length);
  free(bytes);
  return array;
}
