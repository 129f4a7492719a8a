/*
 * Sealed memory files: made full and immutable, and read only when immutable.
 * Attack: a holder that changes a plan or request after it was checked. Source: memfd_create(2), fcntl(2) F_ADD_SEALS.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "failure.h"
#include "functions.h"
#include "value.h"

enum { ALL_SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE, NAME_ROOM = 256 };

static bool write_all(int fd, const uint8_t *bytes, size_t length) {
  for (size_t done = 0; done < length;) {
    ssize_t written = write(fd, bytes + done, length - done);
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) done += (size_t)written;
  }
  return true;
}

napi_value native_sealed_memfd(napi_env env, napi_callback_info info) {
  napi_value arguments[2];
  char name[NAME_ROOM];
  const uint8_t *bytes = NULL;
  size_t length = 0;
  if (!take_arguments(env, info, 2, arguments) || !take_text(env, arguments[0], name, sizeof name) ||
      !take_bytes(env, arguments[1], &bytes, &length)) {
    return NULL;
  }
  int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return throw_call(env, "memfd_create");
  const char *call = "write";
  bool sealed = write_all(fd, bytes, length) && lseek(fd, 0, SEEK_SET) == 0;
  if (sealed) {
    call = "fcntl";
    sealed = fcntl(fd, F_ADD_SEALS, ALL_SEALS) == 0;
  }
  napi_value result = sealed ? int_value(env, fd) : throw_call(env, call);
  if (result == NULL) (void)close(fd);
  return result;
}

napi_value native_memfd_seals(napi_env env, napi_callback_info info) {
  napi_value arguments[1];
  int fd = -1;
  if (!take_arguments(env, info, 1, arguments) || !take_int(env, arguments[0], &fd)) return NULL;
  int seals = fcntl(fd, F_GET_SEALS);
  return seals >= 0 ? int_value(env, seals) : throw_call(env, "fcntl");
}

/* pread leaves the offset alone, which is shared with every other holder. */
static bool read_all(int fd, uint8_t *bytes, size_t length) {
  for (size_t done = 0; done < length;) {
    ssize_t got = pread(fd, bytes + done, length - done, (off_t)done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += (size_t)got;
  }
  return true;
}

static bool judge_sealed(int fd, int minimum, int maximum, struct stat *state, struct failure *failure) {
  int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || fstat(fd, state) != 0) {
    failure_of_call(failure, seals < 0 ? "fcntl" : "fstat");
    return false;
  }
  if ((seals & ALL_SEALS) != ALL_SEALS) {
    failure_of_rule(failure, "EUNSEALED", "fcntl", "memfd refused: expected seals 0x%x, got 0x%x", ALL_SEALS, seals);
    return false;
  }
  if (state->st_size >= minimum && state->st_size <= maximum) return true;
  failure_of_rule(failure, "EMSGSIZE", "fstat", "memfd refused: expected %d to %d bytes, got %lld", minimum, maximum,
                  (long long)state->st_size);
  return false;
}

napi_value native_read_sealed(napi_env env, napi_callback_info info) {
  napi_value arguments[3];
  struct failure failure = {0};
  struct stat state;
  int fd = -1;
  int minimum = 0;
  int maximum = 0;
  if (!take_arguments(env, info, 3, arguments) || !take_int(env, arguments[0], &fd) ||
      !take_int(env, arguments[1], &minimum) || !take_int(env, arguments[2], &maximum)) {
    return NULL;
  }
  if (!judge_sealed(fd, minimum, maximum, &state, &failure)) return failure_throw(env, &failure);
  size_t length = (size_t)state.st_size;
  void *data = NULL;
  napi_value buffer, array;
  REQUIRE(env, napi_create_arraybuffer(env, length, &data, &buffer));
  if (!read_all(fd, data, length)) return throw_call(env, "pread");
  REQUIRE(env, napi_create_typedarray(env, napi_uint8_array, length, buffer, 0, &array));
  return array;
}
