/* wait - until pods or jobs are in a state: asked again when something has
 * changed, as the server says. */
#ifndef BIGA_CLI_VERB_WAIT_H
#define BIGA_CLI_VERB_WAIT_H

#include "cli/base/cli.h"

enum { WAIT_TIMED_OUT = 124 }; /* an exit code, as timeout(1) has it */

enum wait_for {
    WAIT_PLACED,
    WAIT_RUNNING,
    WAIT_READY,
    WAIT_DONE,
    WAIT_DELETED,
    WAIT_STATES
};

struct wait_thing {
    bool job;   /* else a pod */
    char *name; /* "NAMESPACE/NAME" */
    bool met;
    char *told; /* what was said of it last; NULL: nothing */
};

/* How far what the server says of a thing (NULL: it knows none of that name) is
 * from a state: 0 not yet, 1 it is, -1 it never will be.  Pure. */
int wait_judge(const cJSON *answer, bool job, enum wait_for state);

/* Is --timeout a time?  0, or CLI_USAGE, which is said: before anything is done
 * that is to be waited for. */
int wait_check(const struct cli *c, const char *verb);

/* All of them; 0, CLI_FAILED when one can never be in that state (which is
 * said), or WAIT_TIMED_OUT after --timeout.  While it waits, and stderr is a
 * terminal, it says there what for. */
int wait_for_all(struct cli *c, struct wait_thing *things, size_t n,
                 enum wait_for state);

#endif
