/*
 * Judges descriptor 8 before anything is sent: only a connected Unix stream can be the prepared stream. Says what it
 * is otherwise, so that a wrong hand-over is found at once. Opens nothing in its place.
 * Source: socket(7), unix(7), fstat(2).
 */
#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "chio-exec.h"

static const char *kind_of_file(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFIFO: return "descriptor 8 is a pipe, expected the prepared stream";
    case S_IFREG: return "descriptor 8 is a regular file, expected the prepared stream";
    case S_IFDIR: return "descriptor 8 is a directory, expected the prepared stream";
    case S_IFCHR: return "descriptor 8 is a character device, expected the prepared stream";
    case S_IFBLK: return "descriptor 8 is a block device, expected the prepared stream";
    default: return "descriptor 8 is no socket, expected the prepared stream";
  }
}

static int option(int fd, int name) {
  int value = -1;
  socklen_t length = sizeof value;
  if (getsockopt(fd, SOL_SOCKET, name, &value, &length) != 0) {
    give_up(EXIT_STREAM, "descriptor 8 cannot be examined", errno);
  }
  return value;
}

static const char *kind_of_socket(int fd) {
  int domain = option(fd, SO_DOMAIN);
  int type = option(fd, SO_TYPE);
  struct sockaddr_storage peer;
  socklen_t length = sizeof peer;
  if (domain == AF_INET || domain == AF_INET6) return "descriptor 8 is an internet socket, expected a Unix stream";
  if (domain != AF_UNIX) return "descriptor 8 is a socket of another family, expected a Unix stream";
  if (type == SOCK_DGRAM) return "descriptor 8 is a datagram socket, expected a Unix stream";
  if (type != SOCK_STREAM) return "descriptor 8 is a packet socket, expected a Unix stream";
  if (option(fd, SO_ACCEPTCONN) != 0) return "descriptor 8 is a listening socket, expected a connected Unix stream";
  if (getpeername(fd, (struct sockaddr *)&peer, &length) == 0) return NULL;
  if (errno != ENOTCONN) give_up(EXIT_STREAM, "descriptor 8 cannot be examined", errno);
  return "descriptor 8 is an unconnected socket, expected a connected Unix stream";
}

void require_prepared_stream(int fd) {
  struct stat state;
  if (fstat(fd, &state) != 0) {
    if (errno == EBADF) give_up(EXIT_STREAM, "descriptor 8 is closed, expected the prepared stream", 0);
    give_up(EXIT_STREAM, "descriptor 8 cannot be examined", errno);
  }
  const char *wrong = S_ISSOCK(state.st_mode) ? kind_of_socket(fd) : kind_of_file(state.st_mode);
  if (wrong != NULL) give_up(EXIT_STREAM, wrong, 0);
}
