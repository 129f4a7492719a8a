/*
 * Reads one response frame under a bound and hands its whole body to standard output, or nothing: a torn response
 * never looks like a complete one. The claimed length is compared with the bound before memory is asked for.
 * Source: a frame is a four-byte big-endian length and its body.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "chio-exec.h"

enum { PREFIX_BYTES = 4 };

static const char *const UNDETERMINED = "no response: outcome undetermined, read the broker's record";
static const char *const TRUNCATED = "response ended early: outcome undetermined, read the broker's record";
static const char *const TOO_LARGE = "response is longer than the bound: read the broker's record";

/* As many bytes as wanted, or fewer when the stream ended or was reset. */
static size_t read_up_to(int fd, uint8_t *into, size_t wanted) {
  size_t done = 0;
  while (done < wanted) {
    ssize_t got = recv(fd, into + done, wanted - done, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += (size_t)got;
  }
  return done;
}

struct block read_response(int fd, size_t maximum) {
  uint8_t prefix[PREFIX_BYTES];
  struct block response = {NULL, 0};
  size_t got = read_up_to(fd, prefix, PREFIX_BYTES);
  if (got == 0) give_up(EXIT_UNDETERMINED, UNDETERMINED, 0);
  if (got < PREFIX_BYTES) give_up(EXIT_TRUNCATED, TRUNCATED, 0);
  response.length = frame_length(prefix);
  if (response.length > maximum) give_up(EXIT_TOO_LARGE, TOO_LARGE, 0);
  response.bytes = malloc(response.length > 0 ? response.length : 1);
  if (response.bytes == NULL) give_up(EXIT_MEMORY, "no memory for the response", errno);
  if (read_up_to(fd, response.bytes, response.length) < response.length) give_up(EXIT_TRUNCATED, TRUNCATED, 0);
  return response;
}

void write_response(struct block response) {
  for (size_t done = 0; done < response.length;) {
    ssize_t written = write(STDOUT_FILENO, response.bytes + done, response.length - done);
    if (written < 0 && errno != EINTR) give_up(EXIT_OUTPUT, "standard output did not take the response", errno);
    if (written > 0) done += (size_t)written;
  }
}
