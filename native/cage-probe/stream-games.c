/*
 * Plays one game on the prepared stream, each in a cage and an operation of its own: surplus descriptors, a changed or
 * a second request, early ends, many writers, a pipe in between. Prints what came back; the provider's counter and the
 * broker's record, outside, say what happened.
 * Source: unix(7) SCM_RIGHTS, splice(2), vmsplice(2), shutdown(2), fcntl(2) F_SETSIG.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cage-probe.h"

enum { FRAME_MAXIMUM = 1 << 20, SURPLUS = 20, PATIENCE_MS = 20000, STEP_MS = 10, WRITERS = 8, PIPE_BYTES = 16384 };

static char frame[FRAME_MAXIMUM];
static size_t frame_bytes;

static void read_frame(void) {
  int fd = open("/run/chio/request.frame", O_RDONLY);
  ssize_t length = read(fd, frame, sizeof frame);
  if (length <= 0) _exit(3);
  frame_bytes = (size_t)length;
  close(fd);
}

static bool send_frame(void) {
  size_t sent = 0;
  while (sent < frame_bytes) {
    ssize_t written = write(STREAM, frame + sent, frame_bytes - sent);
    if (written <= 0) return false;
    sent += (size_t)written;
  }
  return true;
}

/* How many bytes come until the end. */
static void tell_answer(void) {
  char buffer[65536];
  long total = 0;
  ssize_t length;
  while ((length = read(STREAM, buffer, sizeof buffer)) > 0) total += length;
  printf("answer %ld\n", total);
}

/* How many of them somebody still holds, when all have had the same time. */
static int still_held(struct pollfd *kept) {
  int held = SURPLUS;
  for (int waited = 0; held > 0 && waited < PATIENCE_MS; waited += STEP_MS) {
    held = 0;
    for (int i = 0; i < SURPLUS; i++) held += poll(&kept[i], 1, 0) == 1 ? 0 : 1;
    if (held > 0) poll(NULL, 0, STEP_MS);
  }
  return held;
}

/* Write ends of pipes go along; each read end tells when nobody holds its other end any more. */
static void surplus_descriptors(void) {
  int ends[SURPLUS];
  struct pollfd kept[SURPLUS];
  union {
    char bytes[CMSG_SPACE(sizeof ends)];
    struct cmsghdr aligned;
  } control;
  struct iovec part = {.iov_base = frame, .iov_len = frame_bytes};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
  for (int i = 0; i < SURPLUS; i++) {
    int pair[2];
    if (pipe(pair) != 0) _exit(4);
    kept[i] = (struct pollfd){.fd = pair[0], .events = 0};
    ends[i] = pair[1];
  }
  struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
  *rights = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof ends)};
  memcpy(CMSG_DATA(rights), ends, sizeof ends);
  long sent = sendmsg(STREAM, &message, 0);
  printf("sendmsg %s\n", sent < 0 ? strerror(errno) : sent == (long)frame_bytes ? "whole" : "short");
  for (int i = 0; i < SURPLUS; i++) close(ends[i]);
  if (sent >= 0) tell_answer();
  printf("held %d\n", still_held(kept));
}

/* Its own file changed first, as a tool would that believes the broker reads it. */
static void changed_request(void) {
  chmod("/run/chio/request.frame", 0600);
  int fd = open("/run/chio/request.frame", O_WRONLY);
  frame[frame_bytes - 3] ^= 1;
  if (fd < 0 || write(fd, frame, frame_bytes) != (ssize_t)frame_bytes) _exit(5);
  send_frame();
  tell_answer();
}

static void second_request(void) {
  send_frame();
  send_frame();
  tell_answer();
}

static void early_end(void) {
  shutdown(STREAM, SHUT_WR);
  send_frame();
  tell_answer();
}

static void half_frame(void) {
  if (write(STREAM, frame, frame_bytes / 2) > 0) shutdown(STREAM, SHUT_WR);
  tell_answer();
}

static void half_close(void) {
  send_frame();
  shutdown(STREAM, SHUT_WR);
  tell_answer();
}

/* Half of it spliced from a pipe, half of it by pages of this process, changed right after. */
static void through_pipe(void) {
  int pair[2];
  if (pipe(pair) != 0) _exit(4);
  for (size_t at = 0; at < frame_bytes;) {
    size_t part = frame_bytes - at < PIPE_BYTES ? frame_bytes - at : PIPE_BYTES;
    struct iovec pages = {.iov_base = frame + at, .iov_len = part};
    ssize_t given = at == 0 ? vmsplice(pair[1], &pages, 1, 0) : write(pair[1], frame + at, part);
    if (given <= 0) _exit(6);
    for (ssize_t moved = 0; moved < given;) {
      ssize_t now = splice(pair[0], NULL, STREAM, NULL, (size_t)(given - moved), 0);
      if (now <= 0) _exit(7);
      moved += now;
    }
    at += (size_t)given;
  }
  tell_answer();
}

/* A frame each, from processes that share the stream. */
static void many_writers(void) {
  for (int i = 0; i < WRITERS; i++) {
    if (fork() != 0) continue;
    send_frame();
    _exit(0);
  }
  while (wait(NULL) > 0) {
  }
  tell_answer();
}

/* The stream's owner is told by a signal of its choice: it is its own process, and nobody else's. */
static void signals(void) {
  signal(SIGURG, SIG_IGN);
  fcntl(STREAM, F_SETSIG, SIGURG);
  fcntl(STREAM, F_SETOWN, getpid());
  fcntl(STREAM, F_SETFL, O_ASYNC);
  send_frame();
  tell_answer();
}

int play(const char *game) {
  static const struct {
    const char *name;
    void (*run)(void);
  } games[] = {
      {"surplus-descriptors", surplus_descriptors}, {"changed-request", changed_request},
      {"second-request", second_request},           {"early-end", early_end},
      {"half-frame", half_frame},                   {"half-close", half_close},
      {"through-pipe", through_pipe},               {"many-writers", many_writers},
      {"signals", signals},
  };
  signal(SIGPIPE, SIG_IGN);
  read_frame();
  for (size_t i = 0; i < sizeof games / sizeof *games; i++) {
    if (strcmp(games[i].name, game) != 0) continue;
    games[i].run();
    fflush(stdout);
    return 0;
  }
  return 2;
}
