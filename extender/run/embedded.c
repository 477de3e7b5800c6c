#include "extender/run/embedded.h"

#include <stdlib.h>

#include "lib/base/mem.h"

struct embedded *embedded_create(const struct demand_config *demand)
{
    struct embedded *e = xcalloc(1, sizeof *e);
    e->store.applied = applied_create(demand);
    e->store.reports = node_reports_create();
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
    free(e);
}
