/*
 * The order in which the walls rise. Everything that may take long happens before the stream arrives; between the
 * handoff and `armed` there is nothing but what needs the stream. After `armed` the host looks from outside and says
 * `go`, or says nothing: then this ends without a byte on the stream.
 * Usage: cage-init PLAN CONTROL STATUS (descriptor numbers, ascending, at least 10).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cage-init.h"

enum { EXIT_USAGE = 2, LOWEST_OPTION = 10, ARGUMENT_COUNT = 4 };

static struct plan plan;

/*
 * Whoever launched may have ignored or blocked signals, which an exec hands on: a tool that cannot be ended by SIGTERM,
 * or that never gets SIGPIPE. Numbers that cannot be changed answer EINVAL, which is as it should be.
 */
static int default_signals(void) {
  sigset_t none;
  for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
  sigemptyset(&none);
  return sigprocmask(SIG_SETMASK, &none, NULL);
}

static int descriptor_argument(const char *text) {
  char *end = NULL;
  long value = strtol(text, &end, 10);
  if (end == text || *end != '\0' || value < LOWEST_OPTION || value >= TARGET_SLOT) _exit(EXIT_USAGE);
  return (int)value;
}

static void prepare(int plan_fd, int control, int status_fd) {
  const int kept[] = {0, 1, 2, plan_fd, control, status_fd};
  open_channel(control);
  close_all_but(kept, 6);
  read_plan(plan_fd, &plan);
  close(plan_fd);
  split_warden(status_fd, &plan.warden_filter);
  if (chdir(plan.directory) != 0) fail("chdir", errno);
  open_target(&plan);
}

static void take_stream(const struct handoff *handoff) {
  const int kept[] = {0, 1, 2, STREAM_SLOT, channel_fd(), TARGET_SLOT};
  move_descriptor(handoff->stream, STREAM_SLOT, 0);
  close_all_but(kept, 6);
}

/* The status pipe's number is free by now: process 1 alone holds that pipe. */
static void raise_walls(int listener_slot) {
  set_limits(&plan, false);
  refuse_new_privileges();
  int listener = install_filter(&plan.tool_filter, plan.exec_once);
  if (plan.exec_once) {
    move_descriptor(listener, listener_slot, O_CLOEXEC);
    admit_one_exec(listener_slot);
  }
  set_limits(&plan, true);
}

int main(int count, char **arguments) {
  if (count != ARGUMENT_COUNT) return EXIT_USAGE;
  int plan_fd = descriptor_argument(arguments[1]);
  int control = descriptor_argument(arguments[2]);
  int status_fd = descriptor_argument(arguments[3]);
  if (plan_fd >= control || control >= status_fd) return EXIT_USAGE;
  if (default_signals() != 0) return EXIT_USAGE;
  umask(077);
  prepare(plan_fd, control, status_fd);
  const int waiting[] = {0, 1, 2, control, TARGET_SLOT};
  close_all_but(waiting, 5);
  say("ready");
  struct handoff handoff = receive_handoff(&plan);
  write_request_files(&handoff);
  take_stream(&handoff);
  raise_walls(status_fd);
  say("armed");
  await_word("go");
  execute(&plan);
}
