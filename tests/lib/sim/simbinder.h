/* simbinder - a binder at a bindserver, for its tests: what is asked of it, and
 * what it tells.  What does not hold fails the test that calls. */
#ifndef BIGA_TESTS_LIB_SIM_SIMBINDER_H
#define BIGA_TESTS_LIB_SIM_SIMBINDER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "extender/leader/binder.h"
#include "tests/lib/sim/bindserver.h"

/* Where time has to run out, it is CALL_MS and DEADLINE_MS; elsewhere nobody
 * may be late because the machine is. */
enum {
    CALL_MS = 800,
    DEADLINE_MS = 1300,
    PATIENCE_MS = 60000,
    CALM_MS = 600000,
};

/* An allocation as its annotation has it. */
#define SIMBINDER_NOTE "{\"cards\":[\"\\\"c0\\\"\"]}"

struct asked {
    struct binding b;
    atomic_int outcome, settled; /* -1: not yet */
    int64_t told_ms, settled_ms; /* when they were */
    char reason[400];
};

struct simbinder {
    struct bindserver *server;
    struct binder *binder;
    bool one_is_late;      /* the first call; those after it have time */
    atomic_uint leads_for; /* that many questions */
    atomic_int lease_ms;   /* of its lease are left */
    atomic_uint asked;
};

void simbinder_start_with(struct simbinder *f, int64_t call_ms,
                          int64_t deadline_ms);
void simbinder_start(struct simbinder *f);
/* The first call runs out of time; there is enough for others. */
void simbinder_start_timing(struct simbinder *f);
void simbinder_start_hasty(struct simbinder *f);
void simbinder_stop(struct simbinder *f);

/* Of a pod of namespace "ns"; not posted yet, borrows the allocation. */
void asked_init(struct asked *a, const char *pod, const char *uid,
                const char *node, const char *allocation);
/* Until it is told, for at most PATIENCE_MS; it then. */
int asked_await(atomic_int *value);

#endif
