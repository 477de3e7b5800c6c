/* What binder.c (threads and who waits) and binder_step.c (one binding)
 * share. */
#ifndef BIGA_EXTENDER_CLUSTER_BINDER_PRIVATE_H
#define BIGA_EXTENDER_CLUSTER_BINDER_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "extender/cluster/binder.h"
#include "lib/base/strmap.h"
#include "lib/kube/client.h"

/* A pod of which binds are on their way. */
struct busy {
    char uid[DEMAND_UID_MAX + 1];
    unsigned n; /* bindings on their way */
};

struct binder_thread {
    pthread_t thread;
    struct binder *binder;
    struct kube_client *client;
    struct http_answer answer;
    struct str path, body;
};

struct binder {
    struct binder_config config;
    struct binder_thread threads[BINDER_THREADS];
    size_t n_threads; /* that were started */
    atomic_bool stopping;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;
    struct binding *first; /* waiting, by due_ms, then as they came */
    struct strmap busy;    /* struct busy, by uid */
    size_t n_busy;         /* bindings */
};

/* The next step of a binding that is due: a call, and what follows from it.
 * Ends with one of the two below; the binding is not touched after. */
void binding_step(struct binder_thread *t, struct binding *b);

/* Come back to it in `ms`. */
void binder_again(struct binder *x, struct binding *b, int64_t ms);
/* BOUND or REFUSED (or UNKNOWN when the binder ends): it is the poster's
 * again. */
void binder_finish(struct binder *x, struct binding *b,
                   enum binder_outcome outcome, const char *reason);

#endif
