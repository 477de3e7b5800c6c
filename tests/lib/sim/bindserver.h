/* bindserver - an API server that knows pods, how to bind them, open their
 * gates, delete and evict them, and that misbehaves as it is told. */
#ifndef BIGA_TESTS_LIB_SIM_BINDSERVER_H
#define BIGA_TESTS_LIB_SIM_BINDSERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/kube/config.h"

/* What happens to one call.  `DONE`: what is no GET has been carried out
 * all the same. */
enum bindserver_fault {
    FAULT_NONE,
    FAULT_FORBIDDEN,   /* 403 */
    FAULT_INVALID,     /* 422 */
    FAULT_BUSY,        /* 429 */
    FAULT_ERROR,       /* 500 */
    FAULT_ERROR_DONE,  /* 500, e.g. because etcd answered too late */
    FAULT_SILENT,      /* no answer */
    FAULT_SILENT_DONE, /* the same */
    FAULT_LATE_DONE,   /* no answer, and carried out once a GET has found the
                        * pod unbound, or its gate closed */
    FAULT_CUT,         /* the connection ends */
    FAULT_CUT_DONE,    /* the same */
    FAULT_GARBAGE,     /* 200 with what is no JSON */
    FAULT_COUNT
};

struct bindserver;
struct bindserver *bindserver_start(void);
void bindserver_stop(struct bindserver *s); /* NULL allowed */
const struct kube_config *bindserver_config(const struct bindserver *s);

/* Refuses connections from now on, or not any more. */
void bindserver_close(struct bindserver *s);
void bindserver_open(struct bindserver *s);

/* A pod of namespace "ns"; an earlier one of that name is gone. */
void bindserver_pod(struct bindserver *s, const char *name, const char *uid);
/* The same with gate biga.dev/place. */
void bindserver_gated(struct bindserver *s, const char *name, const char *uid);
/* By somebody else, without an allocation. */
void bindserver_open_gate(struct bindserver *s, const char *name);
/* Is its gate open, and for which node alone ("": any)? */
bool bindserver_pin(struct bindserver *s, const char *name, char ret_node[64]);
/* Until it is; for which node. */
void bindserver_await_pin(struct bindserver *s, const char *name,
                          char ret_node[64]);
/* From now on what has no gate and is pinned is bound at once, as by
 * kube-scheduler. */
void bindserver_schedules(struct bindserver *s, bool schedules);
bool bindserver_is_there(struct bindserver *s, const char *name);
void bindserver_delete(struct bindserver *s, const char *name);
/* Bound by somebody else. */
void bindserver_bind(struct bindserver *s, const char *name, const char *node,
                     const char *allocation);
void bindserver_deleting(struct bindserver *s, const char *name);
/* Its node, "" when it has none; false when there is no such pod.  With
 * `ret_allocation` (may be NULL) what the annotation says, for the caller to
 * free. */
bool bindserver_node(struct bindserver *s, const char *name, char ret_node[64],
                     char **ret_allocation);

/* The next calls that are a GET, or ("POST", "PATCH") that are none, meet
 * these, one by one. */
void bindserver_faults(struct bindserver *s, const char *method,
                       const enum bindserver_fault *faults, size_t n);
/* All of them meet this one until they are given others; FAULT_NONE: none. */
void bindserver_always(struct bindserver *s, const char *method,
                       enum bindserver_fault fault);
/* Every call meets one of them by chance, that many out of 1000; 0: none. */
void bindserver_chaos(struct bindserver *s, unsigned permille, uint64_t seed);

/* The calls so far, as "POST p1 n1\nGET p1\n"; PATCH is like POST, DELETE and
 * EVICT like GET; the caller frees. */
char *bindserver_calls(struct bindserver *s);
/* How many POSTs were carried out for a pod's UID, or PATCHes opened its gate;
 * more than one is a fault of this server. */
unsigned bindserver_n_bound(struct bindserver *s);
/* The body of the last call that was no GET; the caller frees. */
char *bindserver_last_body(struct bindserver *s);

#endif
