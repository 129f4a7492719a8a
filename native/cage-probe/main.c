/*
 * Usage: cage-probe attempts OUTSIDE_PID BROKER_PATH | cage-probe stream GAME | cage-probe linger | cage-probe leave |
 * cage-probe walled. `leave` and `linger` leave a process behind that nothing but its cage's end removes; the one ends
 * then, the other stays.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cage-probe.h"

enum { EXIT_USAGE = 2 };

pid_t outside_pid;
const char *broker_path;

/* Two forks and a session of its own, deaf to what can be ignored: what outlives a careless launcher. */
static void leave_behind(void) {
  if (fork() != 0) return;
  setsid();
  if (fork() != 0) _exit(0);
  for (int number = 1; number < NSIG; number++) signal(number, SIG_IGN);
  for (;;) pause();
}

static int attempt_all(void) {
  const struct attempt *const groups[] = {
      process_attempts, socket_attempts, stream_attempts, namespace_attempts, mount_attempts,
      machine_attempts, terminal_attempts, file_attempts, exec_attempts, resource_attempts,
  };
  signal(SIGUSR2, SIG_IGN);
  pass_pid(outside_pid);
  for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) run_attempts(groups[i]);
  printf("end ok\n");
  return 0;
}

static _Noreturn void linger(void) {
  leave_behind();
  printf("lingers\n");
  fflush(stdout);
  for (;;) pause();
}

static int leave(void) {
  leave_behind();
  return 0;
}

int main(int count, char **arguments) {
  const char *mode = count > 1 ? arguments[1] : "";
  if (strcmp(mode, "walled") == 0) return look_at_walls();
  if (strcmp(mode, "linger") == 0) linger();
  if (strcmp(mode, "leave") == 0) return leave();
  if (strcmp(mode, "stream") == 0 && count == 3) return play(arguments[2]);
  if (strcmp(mode, "attempts") != 0 || count != 4) return EXIT_USAGE;
  outside_pid = (pid_t)strtol(arguments[2], NULL, 10);
  broker_path = arguments[3];
  return attempt_all();
}
