/*
 * Reads the plan: a sealed memfd that the host wrote (cage/plan-bytes.ts fixes the same order). Every length is
 * compared with what is left before it is used; strings stay where they lie in the mapping, which lives until exec.
 * Little-endian; each string is a length with its NUL counted, padded to four bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cage-init.h"

enum { PLAN_MAXIMUM_BYTES = 1024 * 1024, FULL_SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };

static const char MAGIC[8] = {'C', 'H', 'I', 'O', 'C', 'A', 'G', '1'};

struct reader {
  uint8_t *at;
  size_t left;
};

static uint8_t *take(struct reader *reader, size_t bytes) {
  uint8_t *at = reader->at;
  if (bytes > reader->left) fail("plan", EBADMSG);
  reader->at += bytes;
  reader->left -= bytes;
  return at;
}

static uint32_t take_u32(struct reader *reader) {
  uint32_t value;
  memcpy(&value, take(reader, sizeof value), sizeof value);
  return value;
}

static uint64_t take_u64(struct reader *reader) {
  uint64_t value;
  memcpy(&value, take(reader, sizeof value), sizeof value);
  return value;
}

static char *take_string(struct reader *reader) {
  uint32_t length = take_u32(reader);
  char *text = (char *)reader->at;
  if (length == 0 || length > PLAN_MAXIMUM_BYTES) fail("plan", EBADMSG);
  take(reader, ((size_t)length + 3) & ~(size_t)3);
  if (memchr(text, '\0', length) != text + length - 1) fail("plan", EBADMSG);
  return text;
}

static void take_strings(struct reader *reader, char **into) {
  uint32_t count = take_u32(reader);
  if (count > STRINGS_MAXIMUM) fail("plan", E2BIG);
  for (uint32_t i = 0; i < count; i++) into[i] = take_string(reader);
  into[count] = NULL;
}

static void take_limits(struct reader *reader, struct plan *plan) {
  plan->limit_count = take_u32(reader);
  if (plan->limit_count > LIMITS_MAXIMUM) fail("plan", E2BIG);
  for (size_t i = 0; i < plan->limit_count; i++) {
    plan->limits[i].resource = (int)take_u32(reader);
    plan->limits[i].value.rlim_cur = take_u64(reader);
    plan->limits[i].value.rlim_max = plan->limits[i].value.rlim_cur;
  }
}

static void take_filter(struct reader *reader, struct filter_program *filter) {
  uint32_t count = take_u32(reader);
  if (count == 0 || count > INSTRUCTIONS_MAXIMUM) fail("plan", EBADMSG);
  filter->count = (uint16_t)count;
  memcpy(filter->instructions, take(reader, count * sizeof(struct sock_filter)), count * sizeof(struct sock_filter));
}

static struct reader map_plan(int fd) {
  struct stat status;
  if ((fcntl(fd, F_GET_SEALS) & FULL_SEALS) != FULL_SEALS) fail("fcntl plan", EPERM);
  if (fstat(fd, &status) != 0) fail("fstat plan", errno);
  if (status.st_size <= 0 || status.st_size > PLAN_MAXIMUM_BYTES) fail("plan", EFBIG);
  void *mapping = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (mapping == MAP_FAILED) fail("mmap plan", errno);
  return (struct reader){.at = mapping, .left = (size_t)status.st_size};
}

void read_plan(int fd, struct plan *plan) {
  struct reader reader = map_plan(fd);
  if (memcmp(take(&reader, sizeof MAGIC), MAGIC, sizeof MAGIC) != 0) fail("plan", EBADMSG);
  plan->exec_once = take_u32(&reader) == 1;
  plan->request_maximum = take_u64(&reader);
  plan->directory = take_string(&reader);
  plan->executable = take_string(&reader);
  take_strings(&reader, plan->arguments);
  take_strings(&reader, plan->environment);
  take_limits(&reader, plan);
  take_filter(&reader, &plan->warden_filter);
  take_filter(&reader, &plan->tool_filter);
  if (reader.left != 0) fail("plan", EBADMSG);
}
