/*
 * chio-exec: the plainest tool. Writes the exact request frame to descriptor 8 once, reads one response frame under
 * a bound, and writes its body to standard output. Never opens another connection and never sends twice: what became
 * of the request after it was written is known from the broker's record only.
 * Source: fd 8 is a connected Unix stream; a frame is a four-byte big-endian length and its body.
 */
#include <stdint.h>
#include <stdlib.h>

#include "chio-exec.h"

static const char *const REQUEST_PATH = "/run/chio/request.frame";

/* The response frame's limit on the wire. */
enum { RESPONSE_MAXIMUM_BYTES = 32 * 1024 * 1024 };

struct options {
  const char *request_path;
  size_t response_maximum;
};

static void take_options(int count, char **arguments, struct options *options) {
  int at = 1;
  if (at + 1 < count && is_same(arguments[at], "--max-response-bytes")) {
    char *end = NULL;
    unsigned long long bytes = strtoull(arguments[at + 1], &end, 10);
    bool digits = arguments[at + 1][0] >= '0' && arguments[at + 1][0] <= '9' && *end == '\0';
    if (!digits || bytes < 1 || bytes > RESPONSE_MAXIMUM_BYTES) {
      give_up(EXIT_USAGE, "--max-response-bytes expected 1 to 33554432", 0);
    }
    options->response_maximum = (size_t)bytes;
    at += 2;
  }
  if (at < count && arguments[at][0] != '-') options->request_path = arguments[at++];
  if (at != count) give_up(EXIT_USAGE, "usage: chio-exec [--max-response-bytes N] [REQUEST_FRAME]", 0);
}

int main(int count, char **arguments) {
  struct options options = {.request_path = REQUEST_PATH, .response_maximum = RESPONSE_MAXIMUM_BYTES};
  struct block frame, response;
  take_options(count, arguments, &options);
  require_prepared_stream(PREPARED_STREAM);
  frame = read_request(options.request_path);
  write_frame(PREPARED_STREAM, frame);
  free(frame.bytes);
  response = read_response(PREPARED_STREAM, options.response_maximum);
  write_response(response);
  free(response.bytes);
  return 0;
}
