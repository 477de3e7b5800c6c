/* clock - the time, injectable for tests.  Deadlines and ages use only the
 * monotonic clock: wall time may jump. */
#ifndef BIGA_IO_CLOCK_H
#define BIGA_IO_CLOCK_H

#include <stdint.h>

int64_t clock_ms(void); /* monotonic milliseconds */
int64_t clock_ns(void); /* monotonic nanoseconds */

/* Tests: from now on clock_ms/_ns return `ms` (and * 1e6), until -1. */
void clock_set_fake(int64_t ms);

#endif
