/*
 * Receives one message with its control data: descriptors (close-on-exec) and the sender's credentials.
 * Attack: a peer that sends surplus descriptors, foreign control messages, or fills our table so that a descriptor
 * is silently not delivered. All is collected first, then judged; a refusal closes everything that came.
 * Source: cmsg(3), unix(7), recvmsg(2) MSG_CTRUNC.
 */
#include "control.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Linux 6.5: a pidfd of the sender, installed like a received descriptor. Foreign to us, and to be closed. */
#ifndef SCM_PIDFD
#define SCM_PIDFD 0x04
#endif

/* Rights, credentials and room for foreign messages, so that only a full table can truncate. */
enum { CONTROL_ROOM = CMSG_SPACE(DESCRIPTORS_MAXIMUM * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred)) + 1024 };

/* The kernel gives each kind at most once: more headers than this are refused unread. */
enum { HEADERS_MAXIMUM = 8 };

union control {
  struct cmsghdr align;
  unsigned char room[CONTROL_ROOM];
};

struct judged {
  struct received *received;
  bool foreign;
};

void close_received(struct received *received) {
  for (size_t index = 0; index < received->count; index++) (void)close(received->descriptors[index]);
  received->count = 0;
}

static void take_rights(struct judged *judged, const unsigned char *data, size_t bytes) {
  struct received *received = judged->received;
  for (size_t at = 0; at + sizeof(int) <= bytes; at += sizeof(int)) {
    int fd = -1;
    memcpy(&fd, data + at, sizeof fd);
    if (received->count < DESCRIPTORS_MAXIMUM) {
      received->descriptors[received->count++] = fd;
    } else {
      judged->foreign = true;
      (void)close(fd);
    }
  }
}

static void take_header(struct judged *judged, struct cmsghdr *header) {
  size_t bytes = header->cmsg_len - CMSG_LEN(0);
  const unsigned char *data = CMSG_DATA(header);
  bool ours = header->cmsg_level == SOL_SOCKET;
  if (ours && header->cmsg_type == SCM_RIGHTS && bytes % sizeof(int) == 0) {
    take_rights(judged, data, bytes);
  } else if (ours && header->cmsg_type == SCM_CREDENTIALS && bytes == sizeof(struct ucred) &&
             !judged->received->has_credentials) {
    memcpy(&judged->received->credentials, data, sizeof(struct ucred));
    judged->received->has_credentials = true;
  } else {
    judged->foreign = true;
    if (ours && header->cmsg_type == SCM_PIDFD) take_rights(judged, data, bytes);
  }
}

static void take_headers(struct judged *judged, struct msghdr *message) {
  struct cmsghdr *header = CMSG_FIRSTHDR(message);
  for (int seen = 0; header != NULL; header = CMSG_NXTHDR(message, header)) {
    if (header->cmsg_len < CMSG_LEN(0) || ++seen > HEADERS_MAXIMUM) {
      judged->foreign = true;
      return;
    }
    take_header(judged, header);
  }
}

static int refuse(struct received *received, struct failure *failure, const char *code, const char *why) {
  close_received(received);
  failure_of_rule(failure, code, "recvmsg", "message refused: %s", why);
  return -1;
}

int receive_message(int fd, uint8_t *payload, size_t room, struct received *received, struct failure *failure) {
  union control control;
  struct iovec part = {.iov_base = payload, .iov_len = room};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  struct judged judged = {.received = received, .foreign = false};
  memset(received, 0, sizeof *received);
  message.msg_control = control.room;
  message.msg_controllen = sizeof control.room;
  ssize_t length = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  while (length < 0 && errno == EINTR) length = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (length < 0) {
    failure_of_call(failure, "recvmsg");
    return failure->number == EAGAIN ? 0 : -1;
  }
  received->length = (size_t)length;
  take_headers(&judged, &message);
  if ((message.msg_flags & MSG_CTRUNC) != 0) {
    return refuse(received, failure, "ECTRUNC", "a descriptor was not delivered (no free descriptor here?)");
  }
  if ((message.msg_flags & MSG_TRUNC) != 0) {
    return refuse(received, failure, "EMSGSIZE", "its payload is longer than the maximum");
  }
  if (judged.foreign) return refuse(received, failure, "EFOREIGNCMSG", "it carries a foreign control message");
  return 1;
}

int require_descriptors(struct received *received, size_t expected, struct failure *failure) {
  size_t got = received->count;
  if (got == expected) return 0;
  bool ended = got == 0 && received->length == 0;
  close_received(received);
  failure_of_rule(failure, got < expected ? "EFEWFD" : "EMANYFD", "recvmsg",
                  "message refused: expected %zu descriptors, got %zu%s", expected, got,
                  ended ? " (end of stream)" : "");
  return -1;
}
