/* What the embedded source tells of pods: how they fare, as their nodes say. */
#include <inttypes.h>
#include <string.h>

#include "extender/app/app_metrics.h"
#include "extender/pods/applied_view.h"
#include "extender/run/embedded_private.h"
#include "lib/base/jscan.h"
#include "lib/base/jwrite.h"
#include "lib/io/clock.h"
#include "model/pod/pod_keys.h"

enum { SILENT_MS = 45000 }; /* longer than a node's question may take */

/* --- objects that are shown ----------------------------------------------- */

uint64_t embedded_version(void *ctx)
{
    const struct embedded *e = ctx;
    return applied_version(e->store.applied) +
           node_reports_version(e->store.reports);
}

/* Take the brace off that closes the object; whoever did puts it back. */
static bool reopen(struct str *out)
{
    if (out->overflow || out->size == 0 || out->data[out->size - 1] != '}')
        return false;
    out->data[--out->size] = '\0';
    return true;
}

void embedded_add_to_allocation(void *ctx, const struct allocation *a,
                                struct str *out)
{
    const struct embedded *e = ctx;
    cleanup_with(pod_set) struct pod_set *set = applied_get(e->store.applied);
    const struct applied_pod *p = a->held
                                      ? NULL
                                      : pod_set_find_uid(set, a->demand.uid);
    if (!p || !reopen(out))
        return;
    jwrite_text(out, "state", pod_state_name(pod_state_shown(p, a)));
    jwrite_bool(out, "ready", p->status->ready);
    jwrite_text(out, "reason", p->status->reason);
    jwrite_text(out, "message", p->status->message);
    str_add_c(out, '}');
}

void embedded_add_to_card(void *ctx, const struct node *node, size_t card,
                          struct str *out)
{
    const struct embedded *e = ctx;
    struct place_told told;
    size_t first = 0;
    (void)topo_count(node->topo, DEVICE_CARD, &first);
    const struct device *d = topo_device(node->topo, first + card);
    if (!node_reports_place(e->store.reports, node->name, d->id, &told) ||
        !reopen(out))
        return;
    if (!*d->health)
        jwrite_text(out, "health", place_health_name(told.health));
    jwrite_text(out, "healthReason", told.reason);
    jwrite_text(out, "runtime", told.runtime);
    str_add_c(out, '}');
}

/* --- one pod -------------------------------------------------------------- */

/* Its node does not even ask what it is to run. */
static void add_silence(const struct embedded *e,
                        const struct allocation *place, struct str *out)
{
    int64_t ago_ms = node_reports_asked_ago(e->store.reports, place->node,
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

/* What is the matter with a pod that has its place, and what to do; nothing
 * when all is well. */
static void add_trouble(const struct embedded *e, const struct applied_pod *p,
                        const struct allocation *place, struct str *out)
{
    const struct pod_status *s = p->status;
    int64_t ago_ms = node_reports_asked_ago(e->store.reports, place->node,
                                            clock_ms());
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
    if (ago_ms < 0 || ago_ms > SILENT_MS) {
        str_add(out, out->size ? "; " : "");
        add_silence(e, place, out);
        if (p->deleting)
            str_addf(out,
                     "; when that node never comes back: biga release %s/%s",
                     p->namespace, p->name);
    }
}

void embedded_add_health(void *ctx, const struct allocation *a,
                         struct str *text)
{
    const struct embedded *e = ctx;
    cleanup_str struct str trouble = STR_INIT(4096);
    cleanup_with(pod_set) struct pod_set *set = applied_get(e->store.applied);
    const struct applied_pod *p = pod_set_find_uid(set, a->demand.uid);
    if (!p)
        return;
    add_trouble(e, p, a, &trouble);
    str_addf(text, "; the pod is %s%s%s", pod_state_name(pod_state_shown(p, a)),
             trouble.size ? ": " : "", str_text(&trouble));
    if (p->deleting)
        str_add(text, "; it is to be deleted");
}

/* It has no place: it waits, or is over. */
static void account_for(const struct pod_set *set, const struct applied_pod *p,
                        struct pod_account *ret)
{
    const struct pod_status *s = p->end ? p->end : p->status;
    ret->demand = p->demand;
    if (!p->end && !p->deleting &&
        (!*s->reason || strcmp(s->reason, "NoPlace") == 0)) {
        pod_set_demand(set, p, &ret->demand);
        return;
    }
    ret->state = pod_state_name(p->end ? p->ended : POD_STATE_PENDING);
    str_addf(&ret->text, "%s%s%s", s->reason, *s->message ? ": " : "",
             s->message);
    if (p->deleting)
        str_addf(&ret->text, "%sit is to be deleted",
                 ret->text.size ? "; " : "");
}

bool embedded_find(void *ctx, const struct snapshot *s, const char *namespace,
                   const char *name, struct pod_account *ret)
{
    const struct embedded *e = ctx;
    cleanup_with(pod_set) struct pod_set *set = applied_get(e->store.applied);
    const struct applied_pod *p = pod_set_find(set, namespace, name);
    (void)s;
    if (p)
        account_for(set, p, ret);
    return p != NULL;
}

/* How much a pod tells of why its job does not run. */
static unsigned worth(const struct applied_pod *p,
                      const struct allocation *place)
{
    const struct pod_status *s = p->end ? p->end : p->status;
    if (p->ended == POD_STATE_FAILED)
        return strcmp(s->reason, "JobTornDown") == 0 ? 4 : 5;
    if (!place && !p->deleting && p->ended == POD_STATE_PENDING)
        return strcmp(s->reason, "JobNotPlaced") == 0 ? 2 : 3;
    return *s->reason ? 2 : 1;
}

bool embedded_find_job(void *ctx, const struct snapshot *s,
                       const char *namespace, const char *job,
                       struct pod_account *ret)
{
    const struct embedded *e = ctx;
    const struct applied_pod *best = NULL;
    unsigned most = 0;
    cleanup_with(pod_set) struct pod_set *set = applied_get(e->store.applied);
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
    if (!best)
        return false;
    ret->place = pod_place(best, s);
    if (!ret->place)
        account_for(set, best, ret);
    return true;
}

/* Of a pod that was applied to an older extender, which did not look. */
bool embedded_find_unknown_key(void *ctx, const char *namespace,
                               const char *name, struct str *text)
{
    const struct embedded *e = ctx;
    cleanup_with(pod_set) struct pod_set *set = applied_get(e->store.applied);
    const struct applied_pod *p = pod_set_find(set, namespace, name);
    struct error odd;
    struct jscan s;
    if (!p)
        return false;
    jscan_init(&s, p->json, p->size);
    if (pod_keys_check(&s, &odd) == 0)
        return false;
    str_add(text, odd.text);
    return true;
}

/* The runner places an applied pod as soon as it fits. */
bool embedded_add_waiting(void *ctx, const struct demand *pod, struct str *text)
{
    const struct embedded *e = ctx;
    cleanup_with(pod_set) struct pod_set *set = applied_get(e->store.applied);
    (void)text;
    return pod_set_find_uid(set, pod->uid) != NULL;
}

/* --- metrics -------------------------------------------------------------- */

void embedded_gauge(void *ctx, const struct snapshot *s)
{
    const struct embedded *e = ctx;
    struct metrics *m = e->store.metrics;
    size_t pods[POD_STATES] = {0}, places[PLACE_HEALTHS] = {0};
    struct error ignored;
    cleanup_with(pod_set) struct pod_set *set = applied_get(e->store.applied);
    for (size_t i = 0; i < set->n_pods; i++) {
        enum pod_state state = (enum pod_state)set->states[i];
        if (state == POD_STATE_PENDING && pod_place(set->pods[i], s))
            state = POD_STATE_WANTED;
        pods[state]++;
    }
    for (unsigned i = 0; i < POD_STATES; i++) {
        const char *state = pod_state_name((enum pod_state)i);
        metrics_set(m, APP_PODS, &state, (int64_t)pods[i]);
    }
    node_reports_count_places(e->store.reports, places);
    for (unsigned i = 0; i < PLACE_HEALTHS; i++) {
        const char *health = place_health_name((enum place_health)i);
        metrics_set(m, APP_PLACES, &health, (int64_t)places[i]);
    }
    metrics_set(m, APP_WRITABLE, NULL,
                writer_can_write(e->store.writer, &ignored));
}
