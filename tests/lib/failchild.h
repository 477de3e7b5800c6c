/* failchild - this very program once more, as a child that failpoints may
 * kill. */
#ifndef BIGA_TESTS_FAILCHILD_H
#define BIGA_TESTS_FAILCHILD_H

#include <stddef.h>

/* Runs it with these arguments (NULL at the end) and BIGA_FAILPOINTS until it
 * ends.  What it writes to its standard output are records of `size` bytes,
 * each of which is given to `learn` as it comes.  How it ended, as waitpid()
 * has it; -1: errno. */
typedef void failchild_learn_f(void *ctx, const void *record);
int failchild_run(const char *points, const char *const *argv, size_t size,
                  failchild_learn_f *learn, void *ctx);

#endif
