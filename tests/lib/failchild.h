/* failchild - this very program once more, as a child that failpoints may
 * kill. */
#ifndef BIGA_TESTS_FAILCHILD_H
#define BIGA_TESTS_FAILCHILD_H

#include <sys/types.h>

/* Begins it with these arguments (NULL at the end) and BIGA_FAILPOINTS; what it
 * writes to its standard output is read from `ret_fd`, which the caller closes.
 * -1: errno. */
pid_t failchild_start(const char *points, const char *const *argv, int *ret_fd);

#endif
