/*
 * The addon's table of functions. One row a function; policy, argument checks and names of refusals of the
 * product stay in TypeScript. Holds no state: what an environment needs lives in its own instance data.
 * Source: Node-API, context-aware addons.
 */
#include <node_api.h>

#include "environment.h"
#include "failure.h"
#include "functions.h"
#include "operation.h"

static napi_value add_functions(napi_env env, napi_value exports) {
#define FUNCTION_ROW(name, function) {name, NULL, function, NULL, NULL, NULL, napi_enumerable, NULL},
  static const napi_property_descriptor rows[] = {NATIVE_FUNCTIONS(FUNCTION_ROW)};
#undef FUNCTION_ROW
  REQUIRE(env, napi_define_properties(env, exports, sizeof rows / sizeof rows[0], rows));
  return exports;
}

NAPI_MODULE_INIT() {
  if (!make_environment(env) || !accept_operations(env)) return throw_status(env);
  return add_functions(env, exports);
}
