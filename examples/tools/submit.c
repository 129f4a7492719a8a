/*
 * A complete tool: submits the request of this run on descriptor 8, once, and prints what the provider answered.
 * Exit: 0 answered, 1 a signed failure, 66 no request, 69 no stream, 75 no whole response (then do nothing again).
 * Build: cc -std=c17 -O2 -static -o submit submit.c
 */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { STREAM = 8, LONGEST_RESPONSE = 33554432 };
enum { SIGNED_FAILURE = 1, NO_MEMORY = 71, NO_REQUEST = 66, NO_STREAM = 69, NO_RESPONSE = 75 };

static void *room(size_t bytes) {
  void *memory = malloc(bytes);
  if (memory == NULL) exit(NO_MEMORY);
  return memory;
}

/* A broker that has closed already may have left a response: a failing write is no end. */
static void submit_frame(void) {
  FILE *frame = fopen("/run/chio/request.frame", "rb");
  if (frame == NULL) exit(NO_REQUEST);
  char piece[65536];
  for (size_t count; (count = fread(piece, 1, sizeof piece, frame)) > 0;) {
    for (size_t done = 0; done < count;) {
      ssize_t written = write(STREAM, piece + done, count - done);
      if (written < 0 && errno != EINTR) return;
      if (written > 0) done += (size_t)written;
    }
  }
  fclose(frame);
}

static void read_exactly(unsigned char *into, size_t count) {
  while (count > 0) {
    ssize_t got = read(STREAM, into, count);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) exit(NO_RESPONSE);
    into += got;
    count -= (size_t)got;
  }
}

/* One JSON document, a NUL behind it. */
static char *read_response(void) {
  unsigned char prefix[4];
  read_exactly(prefix, sizeof prefix);
  uint32_t length =
      (uint32_t)prefix[0] << 24 | (uint32_t)prefix[1] << 16 | (uint32_t)prefix[2] << 8 | prefix[3];
  if (length > LONGEST_RESPONSE) exit(NO_RESPONSE);
  char *text = room((size_t)length + 1);
  read_exactly((unsigned char *)text, length);
  text[length] = '\0';
  return text;
}

/* Turns the first list of decimal numbers behind `member` into bytes, a NUL behind them. */
static size_t bytes_of(const char *text, const char *member, char **bytes) {
  const char *next = strstr(text, member);
  if (next == NULL) exit(NO_RESPONSE);
  next += strlen(member);
  *bytes = room(strlen(next) + 1);
  size_t count = 0;
  while (*next >= '0' && *next <= '9') {
    char *end;
    (*bytes)[count++] = (char)strtoul(next, &end, 10);
    next = *end == ',' ? end + 1 : end;
  }
  (*bytes)[count] = '\0';
  return count;
}

int main(void) {
  int kind = 0;
  socklen_t size = sizeof kind;
  if (getsockopt(STREAM, SOL_SOCKET, SO_TYPE, &kind, &size) != 0 || kind != SOCK_STREAM) return NO_STREAM;
  signal(SIGPIPE, SIG_IGN);
  submit_frame();
  char *answer = read_response();
  if (strncmp(answer, "{\"accepted\":true,", 17) != 0) return SIGNED_FAILURE;
  char *document;
  char *body;
  bytes_of(answer, "\"response\":[", &document);
  size_t length = bytes_of(document, "\"body\":[", &body);
  return fwrite(body, 1, length, stdout) == length && fflush(stdout) == 0 ? 0 : 74;
}
