/*
 * Marks descriptors close-on-exec in ranges, so that nothing inherited reaches a child by accident.
 * Marks only: closing a descriptor under Node's event loop aborts it.
 * Source: close_range(2) CLOSE_RANGE_CLOEXEC (Linux 5.11); below it /proc/self/fd.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "failure.h"
#include "functions.h"
#include "value.h"

/* The door takes no longer list. */
enum { EXCEPT_MAXIMUM = 1024 };

/* Ascending, without doubles, none below first. */
struct exceptions {
  uint32_t count;
  int numbers[EXCEPT_MAXIMUM];
};

static int mark_range(unsigned int from, unsigned int to) {
  if (from > to) return 0;
  return (int)syscall(SYS_close_range, from, to, (unsigned int)CLOSE_RANGE_CLOEXEC);
}

static int mark_between(unsigned int first, const struct exceptions *except) {
  for (uint32_t index = 0; index < except->count; index++) {
    unsigned int excepted = (unsigned int)except->numbers[index];
    if (excepted > first && mark_range(first, excepted - 1) != 0) return -1;
    first = excepted + 1;
  }
  return mark_range(first, ~0U);
}

static bool is_excepted(int fd, const struct exceptions *except) {
  for (uint32_t index = 0; index < except->count; index++) {
    if (except->numbers[index] == fd) return true;
  }
  return false;
}

static int mark_one(const char *name, int first, const struct exceptions *except) {
  char *end = NULL;
  long number = strtol(name, &end, 10);
  if (end == name || *end != '\0' || number < first || is_excepted((int)number, except)) return 0;
  int flags = fcntl((int)number, F_GETFD);
  if (flags < 0) return errno == EBADF ? 0 : -1; /* another thread closed it meanwhile */
  return fcntl((int)number, F_SETFD, flags | FD_CLOEXEC);
}

static int mark_listed(int first, const struct exceptions *except) {
  DIR *list = opendir("/proc/self/fd");
  if (list == NULL) return -1;
  int number = 0;
  for (;;) {
    errno = 0;
    struct dirent *entry = readdir(list);
    if (entry == NULL || mark_one(entry->d_name, first, except) != 0) {
      number = errno; /* 0 at the end of the list */
      break;
    }
  }
  (void)closedir(list);
  errno = number;
  return number == 0 ? 0 : -1;
}

static bool take_exceptions(napi_env env, napi_value array, struct exceptions *except) {
  if (napi_get_array_length(env, array, &except->count) != napi_ok || except->count > EXCEPT_MAXIMUM) {
    (void)throw_status(env);
    return false;
  }
  for (uint32_t index = 0; index < except->count; index++) {
    napi_value element;
    if (napi_get_element(env, array, index, &element) != napi_ok) {
      (void)throw_status(env);
      return false;
    }
    if (!take_int(env, element, &except->numbers[index])) return false;
  }
  return true;
}

napi_value native_mark_close_on_exec_from(napi_env env, napi_callback_info info) {
  napi_value arguments[2];
  struct exceptions except = {0};
  int first = 0;
  if (!take_arguments(env, info, 2, arguments) || !take_int(env, arguments[0], &first) ||
      !take_exceptions(env, arguments[1], &except)) {
    return NULL;
  }
  if (mark_between((unsigned int)first, &except) == 0) return undefined_value(env);
  /* EPERM: seccomp filters of older container engines answer so for calls that they do not know. */
  if (errno != ENOSYS && errno != EINVAL && errno != EPERM) return throw_call(env, "close_range");
  return mark_listed(first, &except) == 0 ? undefined_value(env) : throw_call(env, "fcntl");
}
