/* What binder.c (threads and queue) and binder_step.c (one binding) share. */
#ifndef BIGA_EXTENDER_LEADER_BINDER_PRIVATE_H
#define BIGA_EXTENDER_LEADER_BINDER_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "extender/leader/binder.h"
#include "lib/base/strmap.h"
#include "lib/kube/client.h"

/* A pod with bindings under way. */
struct busy {
    char uid[DEMAND_UID_MAX + 1];
    unsigned n; /* how many */
};

struct binder_thread {
    pthread_t thread;
    struct binder *binder;
    struct kube_client *client;
    struct http_answer answer;
    struct str path, body;
    char reason[ERROR_TEXT_MAX];
};

struct binder {
    struct binder_config config;
    struct binder_thread threads[BINDER_THREADS];
    size_t n_threads; /* that were started */
    atomic_bool stopping;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;
    /* waiting, by due_ms, then as they came: new ones are due last */
    struct binding *first, *last;
    struct strmap busy; /* struct busy, by uid */
    size_t n_busy;      /* bindings */
};

/* What to do after a step. */
enum binding_next {
    BINDING_AGAIN,    /* another step, in `ms` */
    BINDING_BOUND,    /* it is */
    BINDING_REFUSED,  /* not bound, and will not be: `reason` */
    BINDING_UNKNOWN,  /* answer so, with `reason`, and go on looking it up */
    BINDING_ABANDONED /* the binder stops before it is known: `reason` */
};
struct binding_outcome {
    enum binding_next next;
    int64_t ms;
    const char *reason; /* the thread's, valid until its next step */
};
/* Make the next step of a binding: at most one call. */
struct binding_outcome binding_step(struct binder_thread *t, struct binding *b);

#endif
