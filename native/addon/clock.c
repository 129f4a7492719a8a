/*
 * Reads CLOCK_BOOTTIME, on which every deadline stands. Never reads the wall clock.
 * Source: clock_gettime(2).
 */
#include "clock.h"

#include <time.h>

#include "functions.h"
#include "failure.h"

int64_t boot_now_ns(void) {
  struct timespec now = {0, 0};
  /* It cannot fail for a clock that every supported kernel has; INT64_MAX would end every deadline at once. */
  if (clock_gettime(CLOCK_BOOTTIME, &now) != 0) return INT64_MAX;
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

napi_value native_boot_time_ns(napi_env env, napi_callback_info info) {
  napi_value value;
  (void)info;
  REQUIRE(env, napi_create_bigint_int64(env, boot_now_ns(), &value));
  return value;
}
