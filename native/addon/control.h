/*
 * What one received message brought: payload length, descriptors, credentials of the sender, and who closes what.
 * Never hands out a message that was truncated. Source: recvmsg(2), unix(7).
 */
#ifndef CHIO_CONTROL_H
#define CHIO_CONTROL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "failure.h"

/* SCM_MAX_FD of the kernel. */
enum { DESCRIPTORS_MAXIMUM = 253 };

/* One received message. Its descriptors belong to whoever holds this; close_received gives them back. */
struct received {
  size_t length;
  size_t count;
  int descriptors[DESCRIPTORS_MAXIMUM];
  bool has_credentials;
  struct ucred credentials;
};

/*
 * 1 = a message, 0 = nothing there yet, -1 = failure. Whatever is not 1 has closed every descriptor that came.
 * A truncated payload, a truncated or foreign control message is a failure.
 */
int receive_message(int fd, uint8_t *payload, size_t room, struct received *received, struct failure *failure);
void close_received(struct received *received);
/* 0 = exactly as many, -1 = failure, all closed. */
int require_descriptors(struct received *received, size_t expected, struct failure *failure);

#endif
