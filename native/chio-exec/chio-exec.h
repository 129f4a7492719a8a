/*
 * The steps of chio-exec and its exit codes, which tell whether anything was sent.
 * Never opens a connection of its own.
 */
#ifndef CHIO_EXEC_H
#define CHIO_EXEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The one descriptor that a caged tool has beside its stdio. */
enum { PREPARED_STREAM = 8 };

/* After the first byte of the request went out, only the broker's record knows the outcome. */
enum exit_code {
  EXIT_USAGE = 2,
  EXIT_REQUEST = 66,   /* the request frame cannot be read or is no frame; nothing was sent */
  EXIT_STREAM = 69,    /* descriptor 8 is not the prepared stream; nothing was sent */
  EXIT_MEMORY = 71,    /* no memory for a response within the bound */
  EXIT_OUTPUT = 74,    /* standard output did not take the response */
  EXIT_UNDETERMINED = 75, /* the stream ended without a response */
  EXIT_TRUNCATED = 76, /* the stream ended inside the response */
  EXIT_TOO_LARGE = 77, /* the response is longer than the bound */
};

struct block {
  uint8_t *bytes;
  size_t length;
};

/* One line on standard error, then exit. number is an errno, or 0. */
_Noreturn void give_up(enum exit_code code, const char *sentence, int number);
bool is_same(const char *left, const char *right);
size_t frame_length(const uint8_t *prefix);

void require_prepared_stream(int fd);
struct block read_request(const char *path);
void write_frame(int fd, struct block frame);
struct block read_response(int fd, size_t maximum);
void write_response(struct block response);

#endif
