/*
 * New connections: a socket of any family, a pair that could become one, a call on descriptor 8 that would turn it
 * elsewhere, and the ways around the filter: io_uring, the other call tables. Whatever opens is closed unused.
 * Source: socket(2), socketpair(2), unix(7), io_uring_setup(2).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "cage-probe.h"

/* AF_MAX is 46 today; the next ones are asked for as well. */
enum { FAMILIES = 64, FAMILY_TIPC = 30 };

/* The first answer that is not EPERM ends the walk, and its family is noted. */
static long every_family(void) {
  static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_RDM, SOCK_SEQPACKET};
  for (int family = 0; family < FAMILIES; family++) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
      int fd = socket(family, types[i], 0);
      if (fd < 0 && errno == EPERM) continue;
      note(family);
      return fd;
    }
  }
  note(FAMILIES);
  return refused(EPERM);
}

static long pair_of(int family, int type) {
  int pair[2];
  return socketpair(family, type, 0, pair);
}

static long pair_stream(void) { return pair_of(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC); }
static long pair_datagram(void) { return pair_of(AF_UNIX, SOCK_DGRAM); }
static long pair_packet(void) { return pair_of(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK); }
static long pair_tipc(void) { return pair_of(FAMILY_TIPC, SOCK_STREAM); }

static long pair_high(void) {
  int pair[2];
  return syscall(SYS_socketpair, (1L << 32) | AF_UNIX, (1L << 32) | SOCK_DGRAM, 0L, pair);
}

static struct sockaddr_un path_address(const char *path, bool abstract) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strncpy(address.sun_path + (abstract ? 1 : 0), path, sizeof address.sun_path - 2);
  return address;
}

static long connect_from(int fd, const char *path, bool abstract) {
  struct sockaddr_un address = path_address(path, abstract);
  return connect(fd, (struct sockaddr *)&address, sizeof address);
}

static long connect_broker(void) { return connect_from(STREAM, broker_path, false); }
static long connect_abstract(void) { return connect_from(STREAM, "chio-selftest", true); }

static long connect_loopback(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(9)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return connect(STREAM, (struct sockaddr *)&address, sizeof address);
}

/* Where the profile has stream pairs: one of them turned to the broker. */
static long connect_pair(void) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return -1;
  return connect_from(pair[0], broker_path, false);
}

static long bind_stream(void) {
  struct sockaddr_un address = path_address("/tmp/socket", false);
  return bind(STREAM, (struct sockaddr *)&address, sizeof address);
}

static long listen_stream(void) { return listen(STREAM, 1); }
static long accept_stream(void) { return accept(STREAM, NULL, NULL); }
static long accept4_stream(void) { return accept4(STREAM, NULL, NULL, SOCK_CLOEXEC); }

static long ring(void) { return syscall(SYS_io_uring_setup, 1, NULL); }
static long ring_enter(void) { return syscall(SYS_io_uring_enter, 0, 0, 0, 0, NULL, 0L); }
static long ring_register(void) { return syscall(SYS_io_uring_register, 0, 0, NULL, 0); }

#ifdef __x86_64__
enum { I386_SOCKET = 359, X32_BIT = 0x40000000 };

static long other_table_i386(void) {
  long result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(I386_SOCKET), "b"(AF_INET), "c"(SOCK_STREAM), "d"(0) : "memory");
  return result < 0 ? refused((int)-result) : result;
}

static long other_table_x32(void) { return syscall(X32_BIT | SYS_socket, AF_INET, SOCK_STREAM, 0); }
#endif

const struct attempt socket_attempts[] = {
    {"socket-every-family", every_family},
    {"socketpair-stream", pair_stream},
    {"socketpair-datagram", pair_datagram},
    {"socketpair-packet", pair_packet},
    {"socketpair-tipc", pair_tipc},
    {"socketpair-high-bits", pair_high},
    {"connect-8-broker", connect_broker},
    {"connect-8-abstract", connect_abstract},
    {"connect-8-loopback", connect_loopback},
    {"connect-pair-broker", connect_pair},
    {"bind-8", bind_stream},
    {"listen-8", listen_stream},
    {"accept-8", accept_stream},
    {"accept4-8", accept4_stream},
    {"io-uring-setup", ring},
    {"io-uring-enter", ring_enter},
    {"io-uring-register", ring_register},
#ifdef __x86_64__
    {"socket-i386", other_table_i386},
    {"socket-x32", other_table_x32},
#endif
    {NULL, NULL},
};
