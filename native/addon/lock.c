/*
 * Lock files: who holds the lock serves. Opened without following links, judged before and again under the lock.
 * Attack: a link or another user's file in place of ours; a file that is replaced between open and lock.
 * Never unlinks. Source: flock(2), open(2).
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "failure.h"
#include "functions.h"
#include "value.h"

enum { PATH_ROOM = 4096 };

/* O_NONBLOCK: a FIFO or device in its place must not make us wait before it is refused. */
enum { LOCK_FILE_FLAGS = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK };

static bool refuse(struct failure *failure, const char *code, const char *why) {
  failure_of_rule(failure, code, "open", "lock file refused: %s", why);
  return false;
}

static bool judge_lock_file(int fd, struct stat *state, struct failure *failure) {
  if (fstat(fd, state) != 0) {
    failure_of_call(failure, "fstat");
    return false;
  }
  if (!S_ISREG(state->st_mode)) return refuse(failure, "EFTYPE", "expected a regular file, got another kind");
  if (state->st_uid != geteuid()) return refuse(failure, "EPERM", "expected an owner that is us, got another user");
  if (state->st_nlink != 1) return refuse(failure, "EMLINK", "expected exactly one link, got another number");
  return true;
}

static int open_lock_file(const char *path, struct stat *state, struct failure *failure) {
  int fd = open(path, LOCK_FILE_FLAGS, S_IRUSR | S_IWUSR);
  if (fd < 0) {
    failure_of_call(failure, "open");
    return -1;
  }
  if (judge_lock_file(fd, state, failure)) return fd;
  (void)close(fd);
  return -1;
}

static bool lock_now(int fd, struct failure *failure) {
  int outcome = flock(fd, LOCK_EX | LOCK_NB);
  while (outcome != 0 && errno == EINTR) outcome = flock(fd, LOCK_EX | LOCK_NB);
  if (outcome == 0) return true;
  failure_of_call(failure, "flock");
  if (failure->number != EWOULDBLOCK) return false;
  failure_of_rule(failure, "EWOULDBLOCK", "flock", "the lock is held by another instance");
  failure->number = EWOULDBLOCK;
  return false;
}

/* Under the lock the path must still lead to the file that we hold: otherwise two could hold "the" lock. */
static bool still_same(const char *path, const struct stat *opened, struct failure *failure) {
  struct stat now;
  if (lstat(path, &now) == 0 && now.st_dev == opened->st_dev && now.st_ino == opened->st_ino && now.st_nlink == 1) {
    return true;
  }
  return refuse(failure, "ESTALE", "it was replaced while it was being locked");
}

napi_value native_open_lock_file(napi_env env, napi_callback_info info) {
  napi_value arguments[1];
  char path[PATH_ROOM];
  struct stat state;
  struct failure failure = {0};
  if (!take_arguments(env, info, 1, arguments) || !take_text(env, arguments[0], path, sizeof path)) return NULL;
  int fd = open_lock_file(path, &state, &failure);
  return fd >= 0 ? int_value(env, fd) : failure_throw(env, &failure);
}

napi_value native_lock_path(napi_env env, napi_callback_info info) {
  napi_value arguments[1];
  char path[PATH_ROOM];
  struct stat state;
  struct failure failure = {0};
  if (!take_arguments(env, info, 1, arguments) || !take_text(env, arguments[0], path, sizeof path)) return NULL;
  int fd = open_lock_file(path, &state, &failure);
  if (fd < 0) return failure_throw(env, &failure);
  if (lock_now(fd, &failure) && still_same(path, &state, &failure)) return int_value(env, fd);
  (void)close(fd);
  return failure_throw(env, &failure);
}

napi_value native_lock_descriptor(napi_env env, napi_callback_info info) {
  napi_value arguments[1];
  struct failure failure = {0};
  int fd = -1;
  if (!take_arguments(env, info, 1, arguments) || !take_int(env, arguments[0], &fd)) return NULL;
  return lock_now(fd, &failure) ? undefined_value(env) : failure_throw(env, &failure);
}
