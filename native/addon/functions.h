#ifndef CHIO_FUNCTIONS_H
#define CHIO_FUNCTIONS_H

#include <node_api.h>

/* Every function that JavaScript can call. X(name in JavaScript, name in C) */
#define NATIVE_FUNCTIONS(X)                          \
  X("bootTimeNs", native_boot_time_ns)               \
  X("closeDescriptor", native_close_descriptor)      \
  X("duplicateDescriptor", native_duplicate_descriptor) \
  X("openDirectory", native_open_directory)          \
  X("socketPair", native_socket_pair)                \
  X("pipe", native_pipe)                             \
  X("shutdownSocket", native_shutdown_socket)        \
  X("peerCredentials", native_peer_credentials)      \
  X("peerGroups", native_peer_groups)                \
  X("peerPidfd", native_peer_pidfd)

#define DECLARE_FUNCTION(name, function) napi_value function(napi_env env, napi_callback_info info);
NATIVE_FUNCTIONS(DECLARE_FUNCTION)
#undef DECLARE_FUNCTION

#endif
