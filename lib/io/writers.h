/* writers - whether somebody still has a file open to write it.  A container's
 * log is whole only then: its runtime says that the container has exited while
 * what it wrote last is on its way to the file. */
#ifndef BIGA_LIB_IO_WRITERS_H
#define BIGA_LIB_IO_WRITERS_H

#include <stdbool.h>

/* For what is on its way to a log: no machine takes so long, however busy. */
enum { WRITERS_WAIT_MS = 5000 };

/* `fd` is open to read alone.  Where nobody tells (a file system without
 * leases, a file of somebody else), they are gone from a file that has not been
 * written to for a while. */
bool writers_are_gone(int fd);
/* Waits for that; false when the time is over. */
bool writers_await(int fd, unsigned timeout_ms);

#endif
