/*
 * The launcher's terminal: writing into its input, taking it over, reaching the console. Asked of every descriptor that
 * the tool has, plainly and with bits above the 32 that the kernel looks at.
 * Source: ioctl_tty(2), ioctl_console(2), tty(4).
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cage-probe.h"

enum { LINUX_CONSOLE = 0x541c };

static const long HIGH = 1L << 32;

/* EPERM from each; any other answer ends the walk and its descriptor is noted. */
static long ask_all(long request) {
  static const long descriptors[] = {0, 1, 2, STREAM};
  char letter = 'x';
  for (size_t i = 0; i < sizeof descriptors / sizeof *descriptors; i++) {
    long result = syscall(SYS_ioctl, descriptors[i], request, &letter);
    if (result < 0 && errno == EPERM) continue;
    note(descriptors[i]);
    return result;
  }
  return refused(EPERM);
}

static long push(void) { return ask_all(TIOCSTI); }
static long push_high(void) { return ask_all(TIOCSTI + HIGH); }
static long console(void) { return ask_all(LINUX_CONSOLE); }
static long console_high(void) { return ask_all(LINUX_CONSOLE + 7 * HIGH); }
static long take_terminal(void) { return ask_all(TIOCSCTTY); }
static long discipline(void) { return ask_all(TIOCSETD); }
static long redirect_console(void) { return ask_all(TIOCCONS); }

static long open_terminal(void) { return open("/dev/tty", O_RDWR); }
static long open_console(void) { return open("/dev/console", O_RDWR | O_NOCTTY); }
static long open_screen(void) { return open("/dev/tty0", O_RDWR | O_NOCTTY); }
static long open_pseudo(void) { return open("/dev/ptmx", O_RDWR | O_NOCTTY); }

const struct attempt terminal_attempts[] = {
    {"tiocsti", push},
    {"tiocsti-high-bits", push_high},
    {"tioclinux", console},
    {"tioclinux-high-bits", console_high},
    {"tiocsctty", take_terminal},
    {"tiocsetd", discipline},
    {"tioccons", redirect_console},
    {"dev-tty", open_terminal},
    {"dev-console", open_console},
    {"dev-tty0", open_screen},
    {"dev-ptmx", open_pseudo},
    {NULL, NULL},
};
