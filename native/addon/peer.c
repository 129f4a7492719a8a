/*
 * Reads who connected a Unix socket, from the socket alone: credentials, groups, and a pidfd.
 * They name the connector at connect time, not whoever holds the descriptor now. Never looks into /proc.
 * Source: unix(7) SO_PEERCRED, SO_PEERGROUPS, SO_PEERPIDFD (Linux 6.5), pidfd_open(2).
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "failure.h"
#include "functions.h"
#include "value.h"

#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59
#endif
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* NGROUPS_MAX of the kernel: no process can have more. */
enum { GROUPS_MAXIMUM = 65536 };

static bool take_socket(napi_env env, napi_callback_info info, int *fd) {
  napi_value arguments[1];
  return take_arguments(env, info, 1, arguments) && take_int(env, arguments[0], fd);
}

napi_value native_peer_credentials(napi_env env, napi_callback_info info) {
  struct ucred peer = {0, (uid_t)-1, (gid_t)-1};
  socklen_t length = sizeof peer;
  napi_value result;
  int fd = -1;
  if (!take_socket(env, info, &fd)) return NULL;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return throw_call(env, "getsockopt");
  REQUIRE(env, napi_create_object(env, &result));
  if (!set_int64(env, result, "pid", peer.pid) || !set_int64(env, result, "uid", peer.uid) ||
      !set_int64(env, result, "gid", peer.gid)) {
    return NULL;
  }
  return result;
}

static napi_value group_array(napi_env env, const gid_t *groups, size_t count) {
  napi_value array;
  REQUIRE(env, napi_create_array_with_length(env, count, &array));
  for (size_t index = 0; index < count; index++) {
    napi_value group;
    REQUIRE(env, napi_create_uint32(env, groups[index], &group));
    REQUIRE(env, napi_set_element(env, array, (uint32_t)index, group));
  }
  return array;
}

napi_value native_peer_groups(napi_env env, napi_callback_info info) {
  gid_t few[64];
  socklen_t length = sizeof few;
  int fd = -1;
  if (!take_socket(env, info, &fd)) return NULL;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, few, &length) == 0) {
    return group_array(env, few, length / sizeof few[0]);
  }
  /* ERANGE leaves the needed size in length: asked once more, with exactly that. */
  if (errno != ERANGE || length > GROUPS_MAXIMUM * sizeof few[0]) return throw_call(env, "getsockopt");
  gid_t *many = malloc(length);
  if (many == NULL) return throw_call(env, "malloc");
  napi_value result = getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, many, &length) == 0
                          ? group_array(env, many, length / sizeof many[0])
                          : throw_call(env, "getsockopt");
  free(many);
  return result;
}

/* Below Linux 6.5 the option is unknown. The pid may then already be another process: the caller is told. */
static int pidfd_by_number(int fd) {
  struct ucred peer = {0, 0, 0};
  socklen_t length = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return -1;
  if (peer.pid <= 0) {
    errno = ESRCH;
    return -1;
  }
  return (int)syscall(SYS_pidfd_open, peer.pid, 0U);
}

napi_value native_peer_pidfd(napi_env env, napi_callback_info info) {
  int fd = -1;
  int pidfd = -1;
  socklen_t length = sizeof pidfd;
  const char *source = "so_peerpidfd";
  napi_value result;
  if (!take_socket(env, info, &fd)) return NULL;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &length) != 0) {
    /* EINVAL is the kernel's word for a peer that is gone. Opening its number instead could name a stranger. */
    if (errno == EINVAL) errno = ESRCH;
    if (errno != ENOPROTOOPT) return throw_call(env, "getsockopt");
    source = "pidfd_open";
    pidfd = pidfd_by_number(fd);
    if (pidfd < 0) return throw_call(env, "pidfd_open");
  }
  if (napi_create_object(env, &result) == napi_ok && set_int64(env, result, "pidfd", pidfd) &&
      set_string(env, result, "source", source)) {
    return result;
  }
  (void)close(pidfd);
  return throw_status(env);
}
