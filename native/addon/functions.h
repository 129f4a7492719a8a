/*
 * The list of what JavaScript can call, once: declarations and registration are both made from it.
 * Never logic. The typed door with its argument checks is native/index.ts.
 */
#ifndef CHIO_FUNCTIONS_H
#define CHIO_FUNCTIONS_H

#include <node_api.h>

/* Every function that JavaScript can call. X(name in JavaScript, name in C) */
#define NATIVE_FUNCTIONS(X)                                   \
  X("awaitReadable", native_await_readable)                   \
  X("bootTimeNs", native_boot_time_ns)                        \
  X("closeDescriptor", native_close_descriptor)               \
  X("connectUnix", native_connect_unix)                       \
  X("duplicateDescriptor", native_duplicate_descriptor)       \
  X("forbidDumps", native_forbid_dumps)                       \
  X("hungUp", native_hung_up)                                 \
  X("ignoreDebuggerSignal", native_ignore_debugger_signal)    \
  X("lockDescriptor", native_lock_descriptor)                 \
  X("lockPath", native_lock_path)                             \
  X("markCloseOnExecFrom", native_mark_close_on_exec_from)    \
  X("memfdSeals", native_memfd_seals)                         \
  X("openDirectory", native_open_directory)                   \
  X("openLockFile", native_open_lock_file)                    \
  X("peerCredentials", native_peer_credentials)               \
  X("peerGroups", native_peer_groups)                         \
  X("peerPidfd", native_peer_pidfd)                           \
  X("pidfdAlive", native_pidfd_alive)                         \
  X("pidfdOpen", native_pidfd_open)                           \
  X("pidfdSignal", native_pidfd_signal)                       \
  X("pipe", native_pipe)                                      \
  X("readExact", native_read_exact)                           \
  X("readFrame", native_read_frame)                           \
  X("readSealed", native_read_sealed)                         \
  X("readToEnd", native_read_to_end)                          \
  X("receiveDescriptors", native_receive_descriptors)         \
  X("receiveMessage", native_receive_message)                 \
  X("sealedMemfd", native_sealed_memfd)                       \
  X("sendDatagram", native_send_datagram)                     \
  X("sendDescriptors", native_send_descriptors)               \
  X("setPassCredentials", native_set_pass_credentials)        \
  X("shutdownSocket", native_shutdown_socket)                 \
  X("socketInfo", native_socket_info)                         \
  X("socketPair", native_socket_pair)                         \
  X("writeFully", native_write_fully)

#define DECLARE_FUNCTION(name, function) napi_value function(napi_env env, napi_callback_info info);
NATIVE_FUNCTIONS(DECLARE_FUNCTION)
#undef DECLARE_FUNCTION

#endif
