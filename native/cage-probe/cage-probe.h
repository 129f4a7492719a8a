/*
 * cage-probe: the hostile tool of `chio selftest cage`. Inside a cage it tries one way out after the other and prints
 * what the kernel answered; what that means is judged outside, in selftest/escape/. It only asks: no attempt goes
 * beyond this machine, and nothing that was granted is used. Never part of a run that an operator starts otherwise.
 */
#ifndef CAGE_PROBE_H
#define CAGE_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The exit code of an exec of this program that found every wall where it was. */
enum { WALLED = 240, STREAM = 8 };

/* Returns what the call returned: below 0 errno says why it was refused. Runs in a process of its own. */
struct attempt {
  const char *name;
  long (*run)(void);
};

/* Ends with a member without name. */
extern const struct attempt socket_attempts[];
extern const struct attempt stream_attempts[];
extern const struct attempt process_attempts[];
extern const struct attempt namespace_attempts[];
extern const struct attempt mount_attempts[];
extern const struct attempt machine_attempts[];
extern const struct attempt terminal_attempts[];
extern const struct attempt exec_attempts[];
extern const struct attempt file_attempts[];
extern const struct attempt resource_attempts[];

/* A process of the launcher's user outside of the cage, and the path of the broker's socket. */
extern pid_t outside_pid;
extern const char *broker_path;

/* attempt.c */
void note(long number);
void run_attempts(const struct attempt *attempts);
void pass_pid(pid_t pid);
long refused(int error);

/* stream-games.c */
int play(const char *game);

/* exec.c */
int look_at_walls(void);

#endif
