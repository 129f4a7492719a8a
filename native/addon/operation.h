/*
 * One blocking call in a thread of its own under an absolute deadline, and how its ownership moves.
 * Never touches JavaScript from that thread. Source: Node-API, "Asynchronous thread-safe function calls".
 */
#ifndef CHIO_OPERATION_H
#define CHIO_OPERATION_H

#include <node_api.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/un.h>

#include "control.h"
#include "failure.h"

/*
 * One blocking operation and its thread. The JavaScript thread fills it, the operation's thread alone touches it
 * while it runs, then the JavaScript thread again: ownership moves, nothing is shared, no lock is needed.
 */
struct operation {
  struct environment *environment;
  struct operation *next;
  napi_deferred deferred;
  pthread_t thread;

  void (*run)(struct operation *operation);
  napi_value (*result)(napi_env env, struct operation *operation);

  int named_fd;   /* the number that JavaScript named: closeDescriptor of it cancels */
  int fd;         /* our duplicate, closed as soon as the operation ends; or a socket being connected */
  int wake_fd;    /* eventfd: readable = cancelled */
  bool is_socket; /* otherwise a pipe */
  int64_t deadline_boot_ns;
  size_t maximum;

  bool failed;
  struct failure failure;
  bool ended; /* end of stream before the first byte */
  uint8_t *bytes;
  size_t length;
  struct sockaddr_un address;
  struct received received;
};

/* Once for an environment: where ended operations report, and their end with it. false = no exception pending. */
bool accept_operations(napi_env env);
/* Throws and returns NULL, or returns the zeroed operation; release_operation when it is never started. */
struct operation *new_operation(napi_env env);
void release_operation(struct operation *operation);
/* Duplicates the descriptor for the operation. false = exception pending. */
bool take_descriptor(napi_env env, struct operation *operation, int fd);
/* Starts the thread and returns the promise; on failure throws, and the operation is gone. */
napi_value start_operation(napi_env env, struct operation *operation);
void cancel_operations(napi_env env, int fd);

void fail_call(struct operation *operation, const char *call);
/* Waits until fd has one of the events. false = failed: deadline, cancelled, error. */
bool wait_for(struct operation *operation, short events, const char *call);
/* Waits that long, at most to the deadline. false = failed. */
bool pause_for(struct operation *operation, int64_t pause_ns, const char *call);

#endif
