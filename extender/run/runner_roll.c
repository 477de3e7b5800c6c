/* Services that were applied anew: their pods are replaced card by card, each
 * new one ready before the next old one is ended. */
#include <stdlib.h>
#include <string.h>

#include "extender/run/runner_private.h"
#include "lib/base/mem.h"
#include "lib/io/log.h"

/* Its service: the job that it names, else itself. */
static const char *service_of(const struct member *m)
{
    const struct demand *d = &m->pod->demand;
    return d->job[0] ? d->job : d->name;
}

static int compare_services(const void *p, const void *q)
{
    const struct member *a = *(struct member *const *)p,
                        *b = *(struct member *const *)q;
    int order = strcmp(a->pod->namespace, b->pod->namespace);
    if (order == 0)
        order = (a->pod->demand.job[0] != '\0') -
                (b->pod->demand.job[0] != '\0');
    if (order == 0)
        order = strcmp(service_of(a), service_of(b));
    if (order == 0)
        order = (a->pod->number > b->pod->number) -
                (a->pod->number < b->pod->number);
    return order;
}

static bool is_same_service(const struct member *a, const struct member *b)
{
    return strcmp(a->pod->namespace, b->pod->namespace) == 0 &&
           !a->pod->demand.job[0] == !b->pod->demand.job[0] &&
           strcmp(service_of(a), service_of(b)) == 0;
}

/* One that does not run is replaced first: there is nothing to lose. */
static struct member *choose(struct member *const *service, size_t n)
{
    struct member *best = NULL;
    for (size_t i = 0; i < n; i++) {
        struct member *m = service[i];
        bool ready = m->pod->status->ready;
        if (m->pod->deleting ? m->pod->next != NULL : !m->pod->next && !ready)
            return NULL; /* one is on its way */
        if (m->pod->next && !m->pod->deleting &&
            (!best || (!ready && best->pod->status->ready)))
            best = m;
    }
    return best;
}

static void roll(struct look *l, const struct member *m)
{
    struct pod_change c = {.kind = APPLIED_DELETE,
                           .namespace = m->pod->namespace,
                           .name = m->pod->name,
                           .uid = m->pod->uid,
                           .grace_s = -1,
                           .roll = true};
    struct writer_op op = {.kind = WRITER_PODS,
                           .changes = &c,
                           .n_changes = 1,
                           .out = STR_INIT(STR_MAX_DEFAULT)};
    int r = writer_run(l->r->store->writer, &op);
    str_fini(&op.out);
    l->acted = true; /* -ENOENT: it has changed already */
    l->failed |= r < 0 && r != -ENOENT;
    log_event(LOG_INFO, "service-rolls", "namespace", m->pod->namespace, "pod",
              m->pod->name, NULL);
}

void look_roll(struct look *l)
{
    cleanup_free struct member **all = xcalloc(l->n_members + 1, sizeof *all);
    size_t n = 0, end;
    bool any = false;
    for (size_t i = 0; i < l->n_members; i++)
        if (l->members[i].pod->demand.role == ROLE_SERVICE) {
            any |= l->members[i].pod->next != NULL;
            all[n++] = &l->members[i];
        }
    if (!any)
        return;
    qsort(all, n, sizeof *all, compare_services);
    for (size_t i = 0; i < n; i = end) {
        for (end = i + 1; end < n && is_same_service(all[i], all[end]); end++)
            ;
        struct member *m = choose(all + i, end - i);
        if (m)
            roll(l, m);
    }
}
