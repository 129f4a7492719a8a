/*
 * The control socket to the host: short ASCII words over SOCK_SEQPACKET, written plainly, because the host asked for
 * SO_PASSCRED and so learns which process speaks. It is close-on-exec: its end tells the host that the exec happened
 * or that this process is gone. After the filter stands only read and write are left for it.
 * Source: unix(7), credentials of a plain write.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cage-init.h"

enum { EXIT_FAILED = 111, WORD_BYTES = 96 };

static int channel = -1;

void open_channel(int fd) {
  channel = fd;
  if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) fail("fcntl", errno);
}

int channel_fd(void) { return channel; }

void say(const char *message) {
  size_t length = strlen(message);
  if (write(channel, message, length) != (ssize_t)length) _exit(EXIT_FAILED);
}

/* The host's silence is an end, not an error: it went away or changed its mind. */
void await_word(const char *word) {
  char got[WORD_BYTES];
  ssize_t length;
  do {
    length = read(channel, got, sizeof got);
  } while (length < 0 && errno == EINTR);
  if (length < 0) fail("read", errno);
  if (length == 0) _exit(EXIT_FAILED);
  if ((size_t)length != strlen(word) || memcmp(got, word, (size_t)length) != 0) fail("read", EPROTO);
}

_Noreturn void fail(const char *call, int error) {
  char message[WORD_BYTES];
  int length = snprintf(message, sizeof message, "failed %s %d", call, error);
  if (length > 0 && length < (int)sizeof message && channel >= 0) {
    ssize_t ignored = write(channel, message, (size_t)length);
    (void)ignored;
  }
  _exit(EXIT_FAILED);
}
