/*
 * Reads the exact request frame, its four length bytes included, and writes it once, unchanged.
 * Checks only that it is one frame of an allowed length: what is in it was bound before the tool began.
 * Source: the request frame's limit on the wire is 8 MiB.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chio-exec.h"

enum { PREFIX_BYTES = 4, REQUEST_MAXIMUM_BYTES = 8 * 1024 * 1024 };

size_t frame_length(const uint8_t *prefix) {
  return (size_t)prefix[0] << 24 | (size_t)prefix[1] << 16 | (size_t)prefix[2] << 8 | prefix[3];
}

static void read_file(int fd, struct block frame) {
  for (size_t done = 0; done < frame.length;) {
    ssize_t got = read(fd, frame.bytes + done, frame.length - done);
    if (got == 0) give_up(EXIT_REQUEST, "request frame ended early; nothing was sent", 0);
    if (got < 0 && errno != EINTR) give_up(EXIT_REQUEST, "request frame cannot be read; nothing was sent", errno);
    if (got > 0) done += (size_t)got;
  }
}

struct block read_request(const char *path) {
  struct stat state;
  struct block frame = {NULL, 0};
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0 || fstat(fd, &state) != 0) {
    give_up(EXIT_REQUEST, "request frame cannot be opened; nothing was sent", errno);
  }
  if (!S_ISREG(state.st_mode) || state.st_size <= PREFIX_BYTES ||
      state.st_size > PREFIX_BYTES + REQUEST_MAXIMUM_BYTES) {
    give_up(EXIT_REQUEST, "request frame expected a file of 5 bytes to 8 MiB and 4 bytes; nothing was sent", 0);
  }
  frame.length = (size_t)state.st_size;
  frame.bytes = malloc(frame.length);
  if (frame.bytes == NULL) give_up(EXIT_REQUEST, "no memory for the request frame; nothing was sent", errno);
  read_file(fd, frame);
  (void)close(fd);
  if (frame_length(frame.bytes) != frame.length - PREFIX_BYTES) {
    give_up(EXIT_REQUEST, "request frame expected its own length in its first four bytes; nothing was sent", 0);
  }
  return frame;
}

/*
 * A broker that refuses early closes with its answer already written: EPIPE ends the writing, not the reading.
 * MSG_NOSIGNAL, so that SIGPIPE cannot end the tool in between.
 */
void write_frame(int fd, struct block frame) {
  for (size_t done = 0; done < frame.length;) {
    ssize_t sent = send(fd, frame.bytes + done, frame.length - done, MSG_NOSIGNAL);
    if (sent >= 0) {
      done += (size_t)sent;
    } else if (errno == EPIPE || errno == ECONNRESET) {
      return;
    } else if (errno != EINTR) {
      give_up(EXIT_UNDETERMINED, "request could not be written: outcome undetermined, read the broker's record", errno);
    }
  }
}
