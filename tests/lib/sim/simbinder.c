#include "tests/lib/sim/simbinder.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "extender/leader/binder_private.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"

/* Somebody was told something. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t told = PTHREAD_COND_INITIALIZER;

static bool may_bind(void *ctx, int64_t call_ms)
{
    struct simbinder *f = ctx;
    cr_assert(call_ms > 0 && call_ms <= f->binder->config.call_ms);
    if (f->one_is_late)
        f->binder->config.call_ms = CALM_MS;
    unsigned nth = atomic_fetch_add(&f->asked, 1);
    return nth < f->leads_for && call_ms <= f->lease_ms;
}

void simbinder_start_with(struct simbinder *f, int64_t call_ms,
                          int64_t deadline_ms)
{
    struct error err = {0};
    log_set_level(LOG_ERROR);
    f->leads_for = UINT_MAX;
    f->asked = 0;
    f->lease_ms = INT_MAX;
    f->one_is_late = false;
    f->server = bindserver_start();
    const struct binder_config config = {.kube = bindserver_config(f->server),
                                         .may_bind = may_bind,
                                         .ctx = f,
                                         .call_ms = call_ms,
                                         .deadline_ms = deadline_ms};
    cr_assert_eq(binder_start(&config, &f->binder, &err), 0, "%s", err.text);
}

void simbinder_start(struct simbinder *f)
{
    simbinder_start_with(f, CALM_MS, CALM_MS);
}

void simbinder_start_timing(struct simbinder *f)
{
    simbinder_start_with(f, CALL_MS, CALM_MS);
    f->one_is_late = true;
}

void simbinder_start_hasty(struct simbinder *f)
{
    simbinder_start_with(f, CALL_MS, DEADLINE_MS);
}

void simbinder_stop(struct simbinder *f)
{
    binder_stop(f->binder);
    bindserver_stop(f->server);
}

static void tell(atomic_int *value, enum binder_outcome outcome)
{
    hold_lock(&lock);
    *value = (int)outcome;
    (void)pthread_cond_broadcast(&told);
}

static void done(struct binding *b, enum binder_outcome outcome,
                 const char *reason)
{
    struct asked *a = b->ctx;
    (void)snprintf(a->reason, sizeof a->reason, "%s", reason);
    a->told_ms = clock_ms();
    tell(&a->outcome, outcome);
}

static void settled(struct binding *b, enum binder_outcome outcome)
{
    struct asked *a = b->ctx;
    a->settled_ms = clock_ms();
    tell(&a->settled, outcome);
}

void asked_init(struct asked *a, const char *pod, const char *uid,
                const char *node, const char *allocation)
{
    memset(a, 0, sizeof *a);
    a->outcome = a->settled = -1;
    (void)snprintf(a->b.namespace, sizeof a->b.namespace, "ns");
    (void)snprintf(a->b.name, sizeof a->b.name, "%s", pod);
    (void)snprintf(a->b.uid, sizeof a->b.uid, "%s", uid);
    (void)snprintf(a->b.node, sizeof a->b.node, "%s", node);
    a->b.allocation = allocation;
    a->b.allocation_size = strlen(allocation);
    a->b.done = done;
    a->b.settled = settled;
    a->b.ctx = a;
}

int asked_await(atomic_int *value)
{
    struct timespec due;
    (void)clock_gettime(CLOCK_MONOTONIC, &due); /* cannot fail on Linux */
    due.tv_sec += PATIENCE_MS / 1000;
    hold_lock(&lock);
    while (*value < 0 &&
           pthread_cond_clockwait(&told, &lock, CLOCK_MONOTONIC, &due) == 0)
        continue;
    return *value;
}
