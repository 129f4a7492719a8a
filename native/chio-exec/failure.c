/*
 * Ends the tool with one sentence and a typed exit code. Prints fixed words and an errno's name only: never a byte
 * of the request or of the response.
 */
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "chio-exec.h"

bool is_same(const char *left, const char *right) {
  return strcmp(left, right) == 0;
}

static struct iovec words(const char *text) {
  return (struct iovec){.iov_base = (void *)(uintptr_t)text, .iov_len = strlen(text)};
}

void give_up(enum exit_code code, const char *sentence, int number) {
  const char *name = number != 0 ? strerrorname_np(number) : NULL;
  struct iovec line[5] = {words("chio-exec: "), words(sentence), words(name != NULL ? ": " : ""),
                          words(name != NULL ? name : ""), words("\n")};
  ssize_t written = writev(STDERR_FILENO, line, 5);
  (void)written; /* there is nowhere else to say it; the exit code says it too */
  _exit((int)code);
}
