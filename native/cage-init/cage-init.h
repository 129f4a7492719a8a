/*
 * cage-init: the helper inside the cage. Started by bwrap as process 1 of the cage's pid namespace, with a sealed
 * plan, a control socket and a status pipe. It decides nothing: the plan says everything, and what it cannot do it
 * names on the control socket before it ends. It never continues with a wall missing.
 */
#ifndef CAGE_INIT_H
#define CAGE_INIT_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

/* The tool's stream, and where its executable waits for the one exec. */
enum { STREAM_SLOT = 8, TARGET_SLOT = 255 };

/* The bounds of the plan; cage/plan-bytes.ts refuses before it writes more. */
enum { STRINGS_MAXIMUM = 256, LIMITS_MAXIMUM = 16, INSTRUCTIONS_MAXIMUM = 4096 };

struct filter_program {
  uint16_t count;
  struct sock_filter instructions[INSTRUCTIONS_MAXIMUM];
};

struct limit {
  int resource;
  struct rlimit value;
};

struct plan {
  bool exec_once;
  const char *directory;
  const char *executable;
  char *arguments[STRINGS_MAXIMUM + 1];
  char *environment[STRINGS_MAXIMUM + 1];
  size_t limit_count;
  struct limit limits[LIMITS_MAXIMUM];
  uint64_t request_maximum;
  struct filter_program warden_filter;
  struct filter_program tool_filter;
};

struct handoff {
  int stream;
  int request;
  size_t request_bytes;
};

/* channel.c */
void open_channel(int fd);
int channel_fd(void);
void say(const char *message);
void await_word(const char *word);
_Noreturn void fail(const char *call, int error);

/* plan.c */
void read_plan(int fd, struct plan *plan);

/* descriptors.c */
void close_all_but(const int *kept, size_t count);
void move_descriptor(int from, int to, int flags);

/* warden.c */
void split_warden(int status_fd, const struct filter_program *filter);

/* handoff.c */
struct handoff receive_handoff(const struct plan *plan);

/* request-files.c */
void write_request_files(const struct handoff *handoff);

/* walls.c */
void set_limits(const struct plan *plan, bool descriptors);
void refuse_new_privileges(void);
int install_filter(const struct filter_program *filter, bool with_listener);

/* execute.c */
void open_target(const struct plan *plan);
void admit_one_exec(int listener);
_Noreturn void execute(const struct plan *plan);

#endif
