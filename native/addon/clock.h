/*
 * The one clock that deadlines of this addon are compared with. Never the wall clock.
 * Source: clock_gettime(2).
 */
#ifndef CHIO_CLOCK_H
#define CHIO_CLOCK_H

#include <stdint.h>

/* Nanoseconds since boot, time asleep included; no step of the wall clock moves it. */
int64_t boot_now_ns(void);

#endif
