#include "extender/run/embedded.h"

#include <assert.h>
#include <stdlib.h>

#include "extender/run/embedded_private.h"
#include "lib/base/mem.h"

struct embedded *embedded_create(const struct demand_config *demand)
{
    struct embedded *e = xcalloc(1, sizeof *e);
    e->store.applied = applied_create(demand);
    e->store.reports = node_reports_create();
    e->ended = ended_jobs_create();
    applied_watch_gone(e->store.applied, embedded_gone, e);
    return e;
}

int embedded_start(struct embedded *e, struct error *err)
{
    int r = node_poll_start(&e->store, &e->node_poll, err);
    return r == 0 ? runner_start(&e->store, &e->runner, err) : r;
}

void embedded_quiesce(struct embedded *e)
{
    if (e)
        node_poll_stop(e->node_poll);
}

void embedded_stop(struct embedded *e)
{
    if (e)
        runner_stop(e->runner);
}

void embedded_destroy(struct embedded *e)
{
    if (!e)
        return;
    applied_destroy(e->store.applied);
    runner_destroy(e->runner);
    node_poll_destroy(e->node_poll);
    node_reports_destroy(e->store.reports);
    ended_jobs_destroy(e->ended);
    free(e);
}

static bool is_ready(void *ctx, struct str *why)
{
    const struct embedded *e = ctx;
    struct error trouble;
    if (writer_can_write(e->store.writer, &trouble))
        return true;
    str_addf(why, "the state cannot be written: %s", trouble.text);
    return false;
}

/* Who binds is this extender alone, and what the writer has decided is so. */
static const struct pod_source_ops ops = {
    .is_ready = is_ready,
    .gauge = embedded_gauge,
    .find = embedded_find,
    .find_job = embedded_find_job,
    .find_unknown_key = embedded_find_unknown_key,
    .add_health = embedded_add_health,
    .add_waiting = embedded_add_waiting,
    .each_pod = embedded_each_pod,
    .each_asking = embedded_each_asking,
    .each_job = embedded_each_job,
    .pods_version = embedded_pods_version,
    .ended = embedded_ended,
    .version = embedded_version,
    .add_to_allocation = embedded_add_to_allocation,
    .add_to_card = embedded_add_to_card,
    .may_release = embedded_may_release,
};

struct pod_source embedded_source(struct embedded *e)
{
    return (struct pod_source){.ops = &ops, .ctx = e};
}

struct embedded *embedded_of(const struct pod_source *source)
{
    assert(source->ops == &ops);
    return source->ctx;
}
