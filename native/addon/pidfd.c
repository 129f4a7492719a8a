/*
 * Opens, judges and signals processes by pidfd. A pid is only ever a number to open once.
 * Source: pidfd_open(2), pidfd_send_signal(2).
 */
#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "failure.h"
#include "functions.h"
#include "value.h"

napi_value native_pidfd_open(napi_env env, napi_callback_info info) {
  napi_value arguments[1];
  int pid = 0;
  if (!take_arguments(env, info, 1, arguments) || !take_int(env, arguments[0], &pid)) return NULL;
  int pidfd = (int)syscall(SYS_pidfd_open, pid, 0U);
  return pidfd >= 0 ? int_value(env, pidfd) : throw_call(env, "pidfd_open");
}

static int signal_by_pidfd(int pidfd, int signal_number) {
  return (int)syscall(SYS_pidfd_send_signal, pidfd, signal_number, NULL, 0U);
}

/*
 * Readable = ended, a zombie included; signal 0 alone would call a zombie alive. It is sent all the same, because
 * it is what refuses a descriptor that is no pidfd (EBADF): a reused number must not read as a living peer.
 */
napi_value native_pidfd_alive(napi_env env, napi_callback_info info) {
  napi_value arguments[1];
  int pidfd = -1;
  if (!take_arguments(env, info, 1, arguments) || !take_int(env, arguments[0], &pidfd)) return NULL;
  if (signal_by_pidfd(pidfd, 0) != 0) {
    if (errno == ESRCH) return bool_value(env, false);
    /* EINVAL: it lives in another pid namespace; poll decides there too. */
    if (errno != EPERM && errno != EINVAL) return throw_call(env, "pidfd_send_signal");
  }
  struct pollfd state = {.fd = pidfd, .events = POLLIN, .revents = 0};
  int ready = poll(&state, 1, 0);
  while (ready < 0 && errno == EINTR) ready = poll(&state, 1, 0);
  if (ready < 0) return throw_call(env, "poll");
  return bool_value(env, ready == 0);
}

napi_value native_pidfd_signal(napi_env env, napi_callback_info info) {
  napi_value arguments[2];
  int pidfd = -1;
  int signal_number = 0;
  if (!take_arguments(env, info, 2, arguments) || !take_int(env, arguments[0], &pidfd) ||
      !take_int(env, arguments[1], &signal_number)) {
    return NULL;
  }
  if (signal_by_pidfd(pidfd, signal_number) != 0) return throw_call(env, "pidfd_send_signal");
  return undefined_value(env);
}
