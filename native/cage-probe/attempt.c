/*
 * Runs each attempt in a process of its own, so that none spoils the next, and prints one line for it: its name, then
 * `ok`, `eN` for an errno, `sN` for a signal, or `walled`; then a number where the attempt noted one.
 * Source: wait(2).
 */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cage-probe.h"

enum { SECONDS_EACH = 60 };

static int note_fd = -1;

/* The last number noted is the one that counts. */
void note(long number) {
  ssize_t ignored = write(note_fd, &number, sizeof number);
  (void)ignored;
}

long refused(int error) {
  errno = error;
  return -1;
}

static _Noreturn void run_child(const struct attempt *attempt) {
  alarm(SECONDS_EACH);
  long result = attempt->run();
  _exit(result < 0 ? errno : 0);
}

static void tell(const char *name, int status, int notes) {
  long number = 0;
  bool noted = false;
  while (read(notes, &number, sizeof number) == (ssize_t)sizeof number) noted = true;
  int code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) printf("%s s%d", name, WTERMSIG(status));
  else if (code == 0) printf("%s ok", name);
  else if (code == WALLED) printf("%s walled", name);
  else printf("%s e%d", name, code);
  if (noted) printf(" %ld", number);
  printf("\n");
}

static void run_one(const struct attempt *attempt) {
  int pair[2];
  int status = 0;
  if (pipe(pair) != 0) _exit(1);
  fflush(stdout);
  pid_t child = fork();
  if (child < 0) _exit(1);
  if (child == 0) {
    close(pair[0]);
    note_fd = pair[1];
    run_child(attempt);
  }
  close(pair[1]);
  while (waitpid(child, &status, 0) != child) {
  }
  tell(attempt->name, status, pair[0]);
  close(pair[0]);
}

void run_attempts(const struct attempt *attempts) {
  for (; attempts->name != NULL; attempts++) run_one(attempts);
}

/* Where the pid outside is a low number, one of ours could get it: uses the numbers up first. */
void pass_pid(pid_t pid) {
  enum { LOW = 1024 };
  pid_t child = 0;
  while (pid < LOW && child >= 0 && child <= pid) {
    child = fork();
    if (child == 0) _exit(0);
    if (child > 0) waitpid(child, NULL, 0);
  }
}
