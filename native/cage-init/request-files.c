/*
 * The tool's own copy of the request: request.frame is the exact frame with its four length bytes, request.json the
 * body alone. Both 0400 on the cage's private sized tmpfs, made anew or not at all.
 * Source: a frame is a four-byte big-endian length and its body.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cage-init.h"

enum { PREFIX_BYTES = 4 };

static void write_file(const char *path, const uint8_t *bytes, size_t length) {
  int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);
  if (fd < 0) fail("open request file", errno);
  while (length > 0) {
    ssize_t written = write(fd, bytes, length);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write request file", errno);
    bytes += written;
    length -= (size_t)written;
  }
  if (close(fd) != 0) fail("close request file", errno);
}

static uint32_t prefix_of(const uint8_t *bytes) {
  return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | (uint32_t)bytes[3];
}

void write_request_files(const struct handoff *handoff) {
  size_t length = handoff->request_bytes;
  if (length <= PREFIX_BYTES) fail("request frame", EBADMSG);
  uint8_t *frame = mmap(NULL, length, PROT_READ, MAP_PRIVATE, handoff->request, 0);
  if (frame == MAP_FAILED) fail("mmap request", errno);
  if (prefix_of(frame) != length - PREFIX_BYTES) fail("request frame", EBADMSG);
  write_file("/run/chio/request.frame", frame, length);
  write_file("/run/chio/request.json", frame + PREFIX_BYTES, length - PREFIX_BYTES);
  munmap(frame, length);
}
