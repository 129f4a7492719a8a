/*
 * Receives the one message with exactly two descriptors: the prepared stream and the sealed request. What comes
 * truncated, doubled, missing or foreign ends the cage, and its end closes every descriptor that came.
 * Source: unix(7), cmsg(3), recvmsg(2) MSG_CTRUNC, memfd_create(2), fcntl(2) F_GET_SEALS.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "cage-init.h"

/* SCM_MAX_FD of the kernel: room for a surplus, so that it is seen and not truncated. */
enum { WANTED = 2, DESCRIPTORS_MAXIMUM = 253 };
enum { FULL_SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };

static const char WORD[] = "handoff";

static size_t collect(struct msghdr *message, int *into) {
  size_t count = 0;
  for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part != NULL; part = CMSG_NXTHDR(message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) fail("recvmsg handoff", EBADMSG);
    size_t here = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    if (count + here > WANTED) fail("recvmsg handoff", EMFILE);
    memcpy(into + count, CMSG_DATA(part), here * sizeof(int));
    count += here;
  }
  return count;
}

static void receive(int *descriptors) {
  char word[sizeof WORD];
  union {
    char bytes[CMSG_SPACE(DESCRIPTORS_MAXIMUM * sizeof(int))];
    struct cmsghdr aligned;
  } control;
  struct iovec part = {.iov_base = word, .iov_len = sizeof word};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
  ssize_t length;
  do {
    length = recvmsg(channel_fd(), &message, MSG_CMSG_CLOEXEC);
  } while (length < 0 && errno == EINTR);
  if (length < 0) fail("recvmsg handoff", errno);
  if (length == 0) _exit(0);
  if ((message.msg_flags & MSG_CTRUNC) != 0) fail("recvmsg handoff", ENOBUFS);
  bool same = (size_t)length == sizeof WORD - 1 && memcmp(word, WORD, sizeof WORD - 1) == 0;
  if (!same || (message.msg_flags & MSG_TRUNC) != 0) fail("recvmsg handoff", EPROTO);
  if (collect(&message, descriptors) != WANTED) fail("recvmsg handoff", ENODATA);
}

static int option(int fd, int name) {
  int value = 0;
  socklen_t length = sizeof value;
  if (getsockopt(fd, SOL_SOCKET, name, &value, &length) != 0) fail("getsockopt stream", errno);
  return value;
}

/* Connected, and its peer has not closed both ways: a dead stream would be an outcome nobody knows. */
static void check_stream(int fd) {
  struct sockaddr_un peer;
  socklen_t length = sizeof peer;
  struct pollfd state = {.fd = fd, .events = 0};
  if (option(fd, SO_DOMAIN) != AF_UNIX || option(fd, SO_TYPE) != SOCK_STREAM) fail("getsockopt stream", EPROTOTYPE);
  if (option(fd, SO_ACCEPTCONN) != 0) fail("getsockopt stream", EISCONN);
  if (getpeername(fd, (struct sockaddr *)&peer, &length) != 0) fail("getpeername stream", errno);
  if (poll(&state, 1, 0) < 0) fail("poll stream", errno);
  if ((state.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) fail("poll stream", ENOTCONN);
}

/* The tool reads and writes plainly: no O_NONBLOCK and no timeout may be left on the shared description. */
static void make_blocking(int fd) {
  const struct timeval none = {0};
  int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) != 0) fail("fcntl stream", errno);
  if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof none) != 0) fail("setsockopt stream", errno);
  if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &none, sizeof none) != 0) fail("setsockopt stream", errno);
}

static size_t check_request(int fd, uint64_t maximum) {
  struct stat status;
  int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0) fail("fcntl request", errno);
  if ((seals & FULL_SEALS) != FULL_SEALS) fail("fcntl request", EPERM);
  if (fstat(fd, &status) != 0) fail("fstat request", errno);
  if (status.st_size <= 0 || (uint64_t)status.st_size > maximum) fail("fstat request", EFBIG);
  return (size_t)status.st_size;
}

struct handoff receive_handoff(const struct plan *plan) {
  int descriptors[WANTED];
  receive(descriptors);
  check_stream(descriptors[0]);
  make_blocking(descriptors[0]);
  size_t bytes = check_request(descriptors[1], plan->request_maximum);
  return (struct handoff){.stream = descriptors[0], .request = descriptors[1], .request_bytes = bytes};
}
