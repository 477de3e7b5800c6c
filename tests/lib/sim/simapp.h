/* simapp - an embedded extender in this process, with nodes without machines,
 * and pods to apply. */
#ifndef BIGA_TESTS_LIB_SIM_SIMAPP_H
#define BIGA_TESTS_LIB_SIM_SIMAPP_H

#include <stdbool.h>
#include <stddef.h>

#include "extender/pods/applied.h"
#include "extender/run/runner.h"
#include "extender/server.h"
#include "tests/lib/sim/simnode.h"

enum { SIMAPP_NODES = 2, SIMAPP_CARDS = 4 };

extern struct server *simapp_server;
extern struct simnode simapp_nodes[SIMAPP_NODES];
extern unsigned simapp_applied; /* pods so far; their uids count them */

/* With its state in `dir`; NULL: in memory. */
void simapp_begin(const char *dir);
void simapp_end(void);
/* The extender ends and starts again; the nodes go on. */
void simapp_restart(const char *dir);
/* It has been stopped (server_stop()), and starts again. */
void simapp_begin_again(const char *dir);
/* The same as a restart, with the Pods that it has stored edited while it is down: `old` is
 * replaced, once in each that has it. */
void simapp_restart_edited(const char *dir, const char *old, const char *new);
struct runner *simapp_runner(void);

/* A pod of namespace "ns" that asks for a card of its own. */
struct simapp_pod {
    const char *name, *role, *job;
    int pair, size;
    const char *notes; /* more annotations: ,"k":"v" */
    int priority;
    bool shares;    /* its cards, else they are its own */
    unsigned cores; /* of each card; 0: not stated */
};
/* All or none; 0 or -errno. */
int simapp_apply(const struct simapp_pod *pods, size_t n);
int simapp_change(struct pod_change *changes, size_t n);
int simapp_delete(const char *name);
/* Give its place back by hand: the status of the answer, whose text has to
 * contain `part` (NULL: anything). */
int simapp_release(const char *name, const char *part);
/* Those that are not gone already with others. */
void simapp_delete_all(char names[][16], size_t n);
/* The host and xPU pods of a job: "JOB-h0", "JOB-x0" …; how many. */
size_t simapp_job(struct simapp_pod *pods, char names[][16], const char *job,
                  int size);

/* Until nothing changes; then everything is as it must be. */
void simapp_settle(void);
bool simapp_has(const char *name);
size_t simapp_allocations(void);
/* On whichever node; NULL: on none. */
struct simnode_pod *simapp_find(const char *name);
/* Asserts how a pod fares; `part` is in its message. */
void simapp_expect(const char *name, enum pod_state state, const char *reason,
                   const char *part);
/* Asserts that the read listener's answer at `path` has `part` in it. */
void simapp_expect_shown(const char *path, const char *part);

#endif
