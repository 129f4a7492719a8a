/*
 * Makes every error that leaves the addon: an Error with Node's own members code, errno (negative) and syscall.
 * Never carries bytes of a peer; the sentence holds numbers and fixed words only.
 * Source: Node's system errors; strerrorname_np(3).
 */
#include "failure.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void failure_of_call(struct failure *failure, const char *call) {
  int number = errno;
  const char *name = strerrorname_np(number);
  const char *words = strerrordesc_np(number);
  failure->number = number;
  failure->code = name != NULL ? name : "UNKNOWN";
  failure->call = call;
  if (words == NULL || words[0] == '\0') words = "Unknown error";
  /* Node writes these words with a small first letter. */
  (void)snprintf(failure->sentence, sizeof failure->sentence, "%s: %c%s, %s", failure->code,
                 tolower((unsigned char)words[0]), words + 1, call);
}

void failure_of_rule(struct failure *failure, const char *code, const char *call, const char *format, ...) {
  va_list values;
  int written = snprintf(failure->sentence, sizeof failure->sentence, "%s: ", code);
  size_t used = written > 0 && (size_t)written < sizeof failure->sentence ? (size_t)written : 0;
  failure->number = 0;
  failure->code = code;
  failure->call = call;
  va_start(values, format);
  (void)vsnprintf(failure->sentence + used, sizeof failure->sentence - used, format, values);
  va_end(values);
}

static bool set_text(napi_env env, napi_value object, const char *name, const char *text) {
  napi_value value;
  return napi_create_string_utf8(env, text, NAPI_AUTO_LENGTH, &value) == napi_ok &&
         napi_set_named_property(env, object, name, value) == napi_ok;
}

napi_value failure_error(napi_env env, const struct failure *failure) {
  napi_value code, sentence, error, number;
  if (napi_create_string_utf8(env, failure->code, NAPI_AUTO_LENGTH, &code) != napi_ok) return NULL;
  if (napi_create_string_utf8(env, failure->sentence, NAPI_AUTO_LENGTH, &sentence) != napi_ok) return NULL;
  if (napi_create_error(env, code, sentence, &error) != napi_ok) return NULL;
  if (!set_text(env, error, "syscall", failure->call)) return NULL;
  if (failure->number == 0) return error;
  if (napi_create_int32(env, -failure->number, &number) != napi_ok) return NULL;
  return napi_set_named_property(env, error, "errno", number) == napi_ok ? error : NULL;
}

napi_value failure_throw(napi_env env, const struct failure *failure) {
  napi_value error = failure_error(env, failure);
  if (error == NULL) return throw_status(env);
  (void)napi_throw(env, error); /* fails only when an exception is pending already: the same end */
  return NULL;
}

napi_value throw_call(napi_env env, const char *call) {
  struct failure failure;
  failure_of_call(&failure, call);
  return failure_throw(env, &failure);
}

napi_value throw_status(napi_env env) {
  const napi_extended_error_info *info = NULL;
  bool pending = false;
  if (napi_is_exception_pending(env, &pending) == napi_ok && pending) return NULL;
  if (napi_get_last_error_info(env, &info) != napi_ok || info == NULL || info->error_message == NULL) {
    (void)napi_throw_error(env, "ENATIVE", "ENATIVE: a Node-API call failed");
    return NULL;
  }
  (void)napi_throw_error(env, "ENATIVE", info->error_message);
  return NULL;
}
