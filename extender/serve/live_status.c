#include "extender/serve/live_status.h"

#include <inttypes.h>
#include <string.h>

#include "extender/app/app.h"
#include "extender/pods/applied_view.h"
#include "extender/pods/node_reports.h"
#include "extender/view/views.h"
#include "lib/io/clock.h"

enum { SILENT_MS = 45000 }; /* longer than a node's question may take */

uint64_t live_status_version(const struct app *app)
{
    return app->applied ? applied_version(app->applied) +
                              node_reports_version(app->reports)
                        : 0;
}

/* Take the brace off that closes the object; whoever did puts it back. */
static bool reopen(struct str *out)
{
    if (out->overflow || out->size == 0 || out->data[out->size - 1] != '}')
        return false;
    out->data[--out->size] = '\0';
    return true;
}

static void add_text(struct str *out, const char *key, const char *text)
{
    str_addf(out, ",\"%s\":", key);
    str_add_json(out, text);
}

void live_status_allocation(const struct app *app, const struct pod_set *set,
                            const struct allocation *a, struct str *out)
{
    const struct applied_pod *p = set && !a->held
                                      ? pod_set_find_uid(set, a->demand.uid)
                                      : NULL;
    (void)app;
    if (!p || !reopen(out))
        return;
    add_text(out, "state", pod_state_name(pod_state_shown(p, a)));
    str_addf(out, ",\"ready\":%s", p->status->ready ? "true" : "false");
    add_text(out, "reason", p->status->reason);
    add_text(out, "message", p->status->message);
    str_add_c(out, '}');
}

void live_status_card(const struct app *app, const struct node *node,
                      size_t card, struct str *out)
{
    struct place_told told;
    size_t first;
    (void)view_count(node, DEVICE_CARD, &first);
    const struct device *d = topo_device(node->topo, first + card);
    if (!app->reports ||
        !node_reports_place(app->reports, node->name, d->id, &told) ||
        !reopen(out))
        return;
    if (!*d->health)
        add_text(out, "health", place_health_name(told.health));
    add_text(out, "healthReason", told.reason);
    add_text(out, "runtime", told.runtime);
    str_add_c(out, '}');
}

/* Its node does not even ask what it is to run. */
static void add_silence(const struct app *app, const struct allocation *place,
                        struct str *out)
{
    int64_t ago_ms = node_reports_asked_ago(app->reports, place->node,
                                            clock_ms());
    if (ago_ms < 0)
        str_addf(out,
                 "node %s has not asked for its pods since this extender "
                 "started: run its biga-advertiser with --actuate",
                 place->node);
    else
        str_addf(out,
                 "node %s asked for its pods %" PRId64
                 " s ago and is silent since: see the log of its "
                 "biga-advertiser",
                 place->node, ago_ms / 1000);
}

void live_status_trouble(const struct app *app, const struct applied_pod *p,
                         const struct allocation *place, struct str *out)
{
    const struct pod_status *s = p->status;
    int64_t ago_ms = place ? node_reports_asked_ago(app->reports, place->node,
                                                    clock_ms())
                           : 0;
    if (*s->reason)
        str_add(out, s->reason);
    if (*s->reason && *s->message)
        str_add(out, ": ");
    str_add(out, s->message);
    if (p->next)
        str_addf(out,
                 "%swhat was applied last takes its place, one pod of its "
                 "service after the other",
                 out->size ? "; " : "");
    if (place && (ago_ms < 0 || ago_ms > SILENT_MS)) {
        str_add(out, out->size ? "; " : "");
        add_silence(app, place, out);
        if (p->deleting)
            str_addf(out,
                     "; when that node never comes back: biga release %s/%s",
                     p->namespace, p->name);
    }
}

/* How much a pod tells of why its job does not run. */
static unsigned worth(const struct applied_pod *p,
                      const struct allocation *place)
{
    const struct pod_status *s = p->end ? p->end : p->status;
    if (p->ended == APPLIED_FAILED)
        return strcmp(s->reason, "JobTornDown") == 0 ? 4 : 5;
    if (!place && !p->deleting && p->ended == APPLIED_PENDING)
        return strcmp(s->reason, "JobNotPlaced") == 0 ? 2 : 3;
    return *s->reason ? 2 : 1;
}

const struct applied_pod *live_status_spokesman(const struct pod_set *set,
                                                const struct snapshot *s,
                                                const char *namespace,
                                                const char *job)
{
    const struct applied_pod *best = NULL;
    unsigned most = 0;
    for (size_t i = 0; i < set->n_pods; i++) {
        const struct applied_pod *p = set->pods[i];
        if (strcmp(p->namespace, namespace) != 0 ||
            strcmp(p->demand.job, job) != 0)
            continue;
        unsigned w = worth(p, pod_place(p, s));
        if (w > most)
            best = p;
        most = w > most ? w : most;
    }
    return best;
}
