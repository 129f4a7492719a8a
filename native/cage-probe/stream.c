/*
 * What descriptor 8 could give besides its one request. It is a socket of the host's network namespace: its options,
 * its ioctls and its peer's handle are ways to look out, and no byte is sent here.
 * Source: socket(7), unix(7), netdevice(7), fcntl(2) F_SETOWN, ioctl_ns(2).
 */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "cage-probe.h"

enum {
  OPTIONS = 100,
  RECEIVE_TIMEOUT = 20,
  SEND_TIMEOUT = 21,
  PEER_SECURITY = 31,
  PEER_GROUPS = 59,
  NETWORK_COOKIE = 71,
  PEER_PIDFD = 77,
  GET_NETWORK_NAMESPACE = 0x894c,
  OPEN_BOUND_FILE = 0x89e0,
  SET_OWNER = 0x8901,
  SET_GROUP = 0x8902,
};

/* Every option by its number, but the two that a tool may set: its own timeouts. */
static long set_every_option(void) {
  int value[4] = {0};
  for (int name = 1; name < OPTIONS; name++) {
    if (name == RECEIVE_TIMEOUT || name == SEND_TIMEOUT) continue;
    long result = setsockopt(STREAM, SOL_SOCKET, name, value, sizeof value);
    if (result < 0 && errno == EPERM) continue;
    note(name);
    return result;
  }
  note(OPTIONS);
  return refused(EPERM);
}

static long get_option(int name) {
  char value[256];
  socklen_t length = sizeof value;
  return getsockopt(STREAM, SOL_SOCKET, name, value, &length);
}

static long peer_pidfd(void) { return get_option(PEER_PIDFD); }
static long peer_groups(void) { return get_option(PEER_GROUPS); }
static long peer_security(void) { return get_option(PEER_SECURITY); }
static long network_cookie(void) { return get_option(NETWORK_COOKIE); }

/* The interfaces of the namespace that the socket was made in: the host's. */
static long host_interfaces(void) {
  char room[4096];
  struct ifconf list = {.ifc_len = sizeof room, .ifc_buf = room};
  long result = ioctl(STREAM, SIOCGIFCONF, &list);
  if (result == 0) note(list.ifc_len / (long)sizeof(struct ifreq));
  return result;
}

static long host_hardware_address(void) {
  struct ifreq request;
  memset(&request, 0, sizeof request);
  strcpy(request.ifr_name, "lo");
  return ioctl(STREAM, SIOCGIFHWADDR, &request);
}

static long network_namespace(void) { return ioctl(STREAM, GET_NETWORK_NAMESPACE, 0); }
static long bound_file(void) { return ioctl(STREAM, OPEN_BOUND_FILE, 0); }

static long owner_by_ioctl(void) {
  int owner = (int)outside_pid;
  return ioctl(STREAM, SET_OWNER, &owner);
}

static long group_by_ioctl(void) {
  int owner = -(int)outside_pid;
  return ioctl(STREAM, SET_GROUP, &owner);
}

static long owner_by_fcntl(void) { return fcntl(STREAM, F_SETOWN, (int)outside_pid); }

static long owner_extended(void) {
  struct f_owner_ex owner = {.type = F_OWNER_PID, .pid = outside_pid};
  return fcntl(STREAM, F_SETOWN_EX, &owner);
}

static long asynchronous(void) {
  int on = 1;
  return ioctl(STREAM, FIOASYNC, &on);
}

/* Urgent bytes stand outside of the stream's order, and their code in the kernel has been a way out before. */
static long urgent_send(void) { return send(STREAM, "", 1, MSG_OOB | MSG_DONTWAIT); }

static long urgent_message(void) {
  char byte = 0;
  struct iovec part = {.iov_base = &byte, .iov_len = 1};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  return sendmsg(STREAM, &message, MSG_OOB | MSG_DONTWAIT);
}

static long urgent_messages(void) {
  char byte = 0;
  struct iovec part = {.iov_base = &byte, .iov_len = 1};
  struct mmsghdr message = {.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}};
  return sendmmsg(STREAM, &message, 1, MSG_OOB | MSG_DONTWAIT);
}

static long urgent_receive(void) {
  char byte;
  return recv(STREAM, &byte, 1, MSG_OOB | MSG_DONTWAIT);
}

static long urgent_high(void) {
  return syscall(SYS_sendto, 8L, "", 1L, (1L << 32) | MSG_OOB | MSG_DONTWAIT, NULL, 0L);
}

static long send_elsewhere(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strncpy(address.sun_path, broker_path, sizeof address.sun_path - 1);
  return sendto(STREAM, NULL, 0, MSG_DONTWAIT, (struct sockaddr *)&address, sizeof address);
}

static long send_on_output(void) { return send(STDOUT_FILENO, "", 1, 0); }
static long shutdown_output(void) { return shutdown(STDOUT_FILENO, SHUT_WR); }
static long send_high_number(void) { return syscall(SYS_sendto, 1L + (1L << 32), "", 1L, 0L, NULL, 0L); }

static long reopen(void) { return open("/proc/self/fd/8", O_RDWR); }

const struct attempt stream_attempts[] = {
    {"setsockopt-8-every-option", set_every_option},
    {"getsockopt-8-peer-pidfd", peer_pidfd},
    {"getsockopt-8-peer-groups", peer_groups},
    {"getsockopt-8-peer-security", peer_security},
    {"getsockopt-8-network-cookie", network_cookie},
    {"ioctl-8-host-interfaces", host_interfaces},
    {"ioctl-8-hardware-address", host_hardware_address},
    {"ioctl-8-network-namespace", network_namespace},
    {"ioctl-8-bound-file", bound_file},
    {"ioctl-8-set-owner", owner_by_ioctl},
    {"ioctl-8-set-group", group_by_ioctl},
    {"ioctl-8-asynchronous", asynchronous},
    {"fcntl-8-set-owner", owner_by_fcntl},
    {"fcntl-8-set-owner-extended", owner_extended},
    {"send-8-urgent", urgent_send},
    {"sendmsg-8-urgent", urgent_message},
    {"sendmmsg-8-urgent", urgent_messages},
    {"send-8-urgent-high-bits", urgent_high},
    {"recv-8-urgent", urgent_receive},
    {"sendto-8-elsewhere", send_elsewhere},
    {"send-1", send_on_output},
    {"send-1-high-bits", send_high_number},
    {"shutdown-1", shutdown_output},
    {"reopen-8", reopen},
    {NULL, NULL},
};
