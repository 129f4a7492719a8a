/*
 * Conversions between JavaScript values and C, each checked.
 * Never policy: bounds and meaning are checked by the typed door before.
 */
#ifndef CHIO_VALUE_H
#define CHIO_VALUE_H

#include <node_api.h>
#include <stddef.h>
#include <stdint.h>

/* Arguments were checked by the typed door; a false here means the door was bypassed. */
bool take_arguments(napi_env env, napi_callback_info info, size_t count, napi_value *arguments);
bool take_int(napi_env env, napi_value value, int *number);
bool take_bigint(napi_env env, napi_value value, int64_t *number);
bool take_bytes(napi_env env, napi_value value, const uint8_t **bytes, size_t *length);
bool take_text(napi_env env, napi_value value, char *text, size_t room);

bool set_int64(napi_env env, napi_value object, const char *name, int64_t number);
bool set_bool(napi_env env, napi_value object, const char *name, bool truth);
bool set_string(napi_env env, napi_value object, const char *name, const char *text);

napi_value int_value(napi_env env, int number);
napi_value bool_value(napi_env env, bool truth);
napi_value undefined_value(napi_env env);
napi_value int_array(napi_env env, const int *numbers, size_t count);
napi_value copied_bytes(napi_env env, const uint8_t *bytes, size_t length);
/* Takes ownership of a malloc'ed block, whatever happens. */
napi_value owned_bytes(napi_env env, uint8_t *bytes, size_t length);

#endif
