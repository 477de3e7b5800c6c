/* failpoint - places where a test can make the process die, hang or fail.
 *
 *   $BIGA_FAILPOINTS="bind-before-commit=kill:3,commit=fail:1"
 *
 * means: SIGKILL ourselves at the third hit of bind-before-commit, and let
 * the first hit of commit report a failure.  Compiled to nothing unless built
 * with -DFAILPOINTS. */
#ifndef BIGA_LIB_IO_FAILPOINT_H
#define BIGA_LIB_IO_FAILPOINT_H

#include <stdbool.h>

#ifdef FAILPOINTS
/* True when the caller should behave as if the step had failed. */
bool failpoint(const char *name);
/* All names that were compiled in, for a test that loops over them: each
 * name appears in failpoint.c's table, and hitting an unlisted one aborts. */
const char *const *failpoint_names(void); /* NULL-terminated */
#else
static inline bool failpoint(const char *name)
{
    (void)name;
    return false;
}
#endif

#endif
