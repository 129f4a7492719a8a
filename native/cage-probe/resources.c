/*
 * What can be used up: processes, memory, the scratch folders, descriptors; and a crash, which could start the host's
 * crash handler. How far each gets is noted. Memory is asked for, not touched.
 * Source: setrlimit(2), tmpfs(5), core(5), mmap(2).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cage-probe.h"

enum { MEBIBYTE = 1 << 20, BOMB = 8192, HOARD = 1 << 16 };

/* Processes that stay until the bomb has gone off, each waiting for the end of one pipe. */
static long fork_bomb(void) {
  int gate[2];
  char byte;
  long count = 0;
  if (pipe(gate) != 0) return -1;
  while (count < BOMB) {
    pid_t child = fork();
    if (child == 0) {
      close(gate[1]);
      _exit(read(gate[0], &byte, 1) == 0 ? 0 : 1);
    }
    if (child < 0) break;
    count++;
  }
  int error = errno;
  note(count);
  close(gate[1]);
  while (wait(NULL) > 0) {
  }
  return count == BOMB ? 0 : refused(error);
}

/* In mebibytes, up to what no limit of ours would allow. */
static long hoard(int flags) {
  long mebibytes = 0;
  while (mebibytes < HOARD) {
    void *memory = mmap(NULL, 64 * MEBIBYTE, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) break;
    mebibytes += 64;
  }
  int error = errno;
  note(mebibytes);
  return mebibytes >= HOARD ? 0 : refused(error);
}

static long hoard_private(void) { return hoard(MAP_PRIVATE); }
static long hoard_shared(void) { return hoard(MAP_SHARED); }
static long hoard_shared_validated(void) { return hoard(MAP_SHARED_VALIDATE); }
static long hoard_stacks(void) { return hoard(MAP_PRIVATE | MAP_GROWSDOWN); }

/* Memory of the zero device, mapped by several, is no file's and no process's. */
static long hoard_zeros(void) {
  int fd = open("/dev/zero", O_RDWR);
  void *memory = mmap(NULL, MEBIBYTE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return memory == MAP_FAILED ? -1 : 0;
}

static long fill(const char *path) {
  static char page[MEBIBYTE];
  long mebibytes = 0;
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (fd < 0) return fd;
  while (mebibytes < HOARD && write(fd, page, sizeof page) == (ssize_t)sizeof page) mebibytes++;
  int error = errno;
  note(mebibytes);
  close(fd);
  unlink(path);
  return mebibytes == HOARD ? 0 : refused(error == 0 ? ENOSPC : error);
}

static long fill_scratch(void) { return fill("/tmp/full"); }
static long fill_shared(void) { return fill("/dev/shm/full"); }
static long fill_request_folder(void) { return fill("/run/chio/full"); }

/* A sparse file has no blocks; its size is bounded all the same. */
static long long_file(void) {
  signal(SIGXFSZ, SIG_IGN);
  int fd = open("/tmp/long", O_RDWR | O_CREAT, 0600);
  long result = ftruncate(fd, 1L << 40);
  unlink("/tmp/long");
  return result;
}

static long descriptors(void) {
  long count = 0;
  while (dup(0) >= 0) count++;
  note(count);
  return count > 250 ? 0 : -1;
}

static long lock_memory(void) {
  void *memory = mmap(NULL, 16 * MEBIBYTE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? -1 : mlock(memory, 16 * MEBIBYTE);
}

/* A core that would be written, or piped to a program of the host, is said by the status. */
static long crash(void) {
  int status = 0;
  pid_t child = fork();
  if (child == 0) abort();
  if (waitpid(child, &status, 0) != child) return -1;
  return WCOREDUMP(status) ? 0 : refused(EFBIG);
}

static long raise_processor_time(void) {
  struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
  return setrlimit(RLIMIT_CPU, &limit);
}

const struct attempt resource_attempts[] = {
    {"fork-bomb", fork_bomb},
    {"memory", hoard_private},
    {"memory-shared", hoard_shared},
    {"memory-shared-validated", hoard_shared_validated},
    {"memory-of-zeros", hoard_zeros},
    {"memory-of-stacks", hoard_stacks},
    {"memory-locked", lock_memory},
    {"fill-scratch", fill_scratch},
    {"fill-dev-shm", fill_shared},
    {"fill-request-folder", fill_request_folder},
    {"long-file", long_file},
    {"descriptors", descriptors},
    {"crash-dump", crash},
    {"processor-time", raise_processor_time},
    {NULL, NULL},
};
