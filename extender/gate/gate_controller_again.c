/* What kube-scheduler refuses although its gate was opened: it knows of more
 * than Biga judges (volumes, spreading, host ports of pods it has just
 * assumed). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "extender/gate/gate_controller_private.h"
#include "extender/gate/gate_open.h"
#include "lib/base/backoff.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"

enum { BODY_MAX = 2048, PATCH_MAX = 1 << 20 };

/* A pod of its pair is on its node: the others follow it, or nobody does. */
static bool is_fixed(const struct gate_unit *unit, const struct gate_pod *pod)
{
    size_t n, first = gate_unit_pair(unit, pod->demand.pair, &n);
    for (size_t i = first; i < first + n; i++)
        if (unit->pods[i]->bound && !unit->pods[i]->finished)
            return true;
    return false;
}

static bool is_refused(const struct gate_pod *p)
{
    return p->refused_ms && !p->deleting &&
           clock_ms() - p->refused_ms >= GATE_REFUSED_MS;
}

/* Opened, not bound, and of a pair of which one is refused; ctx is the unit. */
static bool is_to_go(const void *ctx, const struct gate_pod *p)
{
    const struct gate_unit *unit = ctx;
    bool refused = false;
    size_t n, first = gate_unit_pair(unit, p->demand.pair, &n);
    for (size_t i = first; i < first + n && !refused; i++)
        refused = is_refused(unit->pods[i]);
    return refused && p->state == GATE_OPENED && !p->deleting &&
           !is_fixed(unit, p);
}

static void avoid_node(struct gate_note *note, const char *node)
{
    struct gate_avoided *a = strmap_get(&note->avoid, node);
    if (!a) {
        a = xcalloc(1, sizeof *a);
        (void)snprintf(a->node, sizeof a->node, "%s", node);
        (void)strmap_put(&note->avoid, a->node, a);
    }
    a->until_ms = clock_ms() + GATE_AVOID_MS;
}

/* What it was given; the caller owns the reference.  NULL: nothing. */
static struct allocation *place_of(struct gate_controller *g,
                                   const struct gate_pod *p)
{
    cleanup_with(snapshot) struct snapshot *s =
        writer_snapshot(g->config.writer);
    const struct allocation *a = alloc_index_find_uid(s->allocations,
                                                      p->demand.uid);
    return a ? allocation_ref((struct allocation *)a) : NULL;
}

/* The nodes on which they are refused. */
static void avoid_nodes(struct gate_controller *g, struct gate_note *note,
                        const struct gate_unit *pods)
{
    for (size_t i = 0; i < pods->n; i++) {
        cleanup_with(allocation) struct allocation *a =
            is_refused(pods->pods[i]) ? place_of(g, pods->pods[i]) : NULL;
        if (a)
            avoid_node(note, a->node);
    }
}

/* --- by their controller ------------------------------------------------------ */

static int delete_pod(struct gate_controller *g, const struct gate_pod *p,
                      struct error *err)
{
    cleanup_str struct str body = STR_INIT(BODY_MAX);
    gate_write_delete(p->demand.uid, "", &body);
    int r = gate_call(g, "DELETE", &p->demand, "", KUBE_JSON, &body, err);
    return r == -ENOENT || r == -EBUSY ? 0 : r; /* it is gone */
}

static void replace(struct gate_controller *g, const struct gate_pod *p,
                    const char *node, struct str *text)
{
    struct error err = {0};
    int r = delete_pod(g, p, &err);
    log_event(r < 0 ? LOG_WARN : LOG_INFO, "gate-again", "namespace",
              p->demand.namespace, "pod", p->demand.name, "node", node, "error",
              err.text, NULL);
    if (r < 0) {
        str_addf(text, "; it could not be deleted: %s", err.text);
        return;
    }
    cleanup_str struct str why = STR_INIT(EVENTS_TEXT_MAX);
    str_addf(&why,
             "deleted, so that its controller makes it anew and it is planned "
             "again: kube-scheduler refuses its pair on node %s",
             node);
    g->config.tell(g->config.ctx, &p->demand, EVENTS_REFUSED, str_text(&why));
}

static void replace_all(struct gate_controller *g, struct gate_note *note,
                        const struct gate_unit *pods, struct str *text)
{
    avoid_nodes(g, note, pods);
    for (size_t i = 0; i < pods->n; i++) {
        cleanup_with(allocation) struct allocation *a = place_of(g,
                                                                 pods->pods[i]);
        replace(g, pods->pods[i], a ? a->node : "", text);
    }
}

/* --- in place -------------------------------------------------------------------- */

static void take_back(struct gate_controller *g, const struct gate_pod *p)
{
    struct writer_op op = {.kind = WRITER_FREE,
                           .namespace = p->demand.namespace,
                           .pod = p->demand.name,
                           .uid = p->demand.uid};
    (void)writer_run(g->config.writer, &op); /* it has none: as well */
    fit_nodes_forget(g->config.fit, p->demand.uid);
}

/* It is as it was: kube-scheduler may still bind it there. */
static void give_again(struct gate_controller *g, const struct gate_pod *p,
                       struct allocation *a)
{
    struct writer_op op = {.kind = WRITER_ADOPT, .allocation = a};
    (void)writer_run(g->config.writer, &op); /* its failures are in the log */
    fit_nodes_assume(g->config.fit, p->demand.uid, a->node, p->needs);
}

static bool is_same_place(const struct allocation *a,
                          const struct gate_placed *p)
{
    struct error ignored;
    cleanup_with(allocation) struct allocation *b = NULL;
    if (allocation_decode(p->allocation, p->allocation_size, &b, &ignored) < 0)
        return false;
    cleanup_str struct str x = STR_INIT(STR_MAX_DEFAULT);
    cleanup_str struct str y = STR_INIT(STR_MAX_DEFAULT);
    allocation_encode_devices(a, &x);
    allocation_encode_devices(b, &y);
    return strcmp(a->node, b->node) == 0 && x.size == y.size &&
           memcmp(x.data, y.data, x.size) == 0;
}

/* Nothing has moved: what kube-scheduler refuses it would refuse again. */
static bool is_where_it_was(struct allocation *const *old,
                            const struct gate_placing *placing)
{
    for (size_t i = 0; i < placing->n; i++)
        if (!old[i] || !is_same_place(old[i], &placing->pods[i]))
            return false;
    return true;
}

/* Other places for all of them; with the same ones their nodes are passed
 * over. */
static int find_others(struct gate_controller *g, struct gate_note *note,
                       const struct gate_unit *pods,
                       struct allocation *const *old, struct gate_placing *ret,
                       struct str *text)
{
    for (int i = 0;; i++) {
        cleanup_gate_no_place struct gate_no_place no_place = {0};
        int r = gate_place(&g->place, pods, &note->avoid, ret, &no_place);
        if (r < 0)
            str_addf(text, "; no other place: %s", str_text(&no_place.text));
        if (r < 0 || i > 0 || !is_where_it_was(old, ret))
            return r;
        gate_unplace(&g->place, ret, "kube-scheduler refuses it there");
        gate_placing_fini(ret);
        for (size_t k = 0; k < pods->n; k++)
            if (old[k])
                avoid_node(note, old[k]->node);
    }
}

/* The claims of its old place go first, as long as they are as they were judged:
 * from then on it is bound at the new place or nowhere, which `*ret_moved`
 * tells. */
static int reopen(struct gate_controller *g, const struct gate_placed *placed,
                  bool *ret_moved, struct error *err)
{
    cleanup_free struct gate_pinned *pinned = NULL;
    cleanup_str struct str body = STR_INIT(PATCH_MAX);
    size_t n;
    int r = gate_make_claims(g, placed, &pinned, &n, err);
    r = r < 0 ? r : gate_withdraw_claims(g, &placed->demand, pinned, n, err);
    *ret_moved = r == 0;
    if (r < 0)
        return r;
    gate_reopen_write(placed, &body);
    r = gate_call(g, "PATCH", &placed->demand, "", KUBE_MERGE_PATCH, &body,
                  err);
    return r < 0 ? r : gate_name_claims(g, placed, &pinned, n, err);
}

/* Each pod gets its new place, or has its old one. */
static void reopen_all(struct gate_controller *g, const struct gate_unit *pods,
                       struct allocation *const *old,
                       const struct gate_placing *placing, struct str *text)
{
    for (size_t i = 0; i < placing->n; i++) {
        const struct gate_placed *p = &placing->pods[i];
        struct error err = {0};
        bool moved;
        int r = reopen(g, p, &moved, &err);
        log_event(r < 0 ? LOG_WARN : LOG_INFO, "gate-again", "namespace",
                  p->demand.namespace, "pod", p->demand.name, "node", p->node,
                  "error", err.text, NULL);
        binds_end(g->config.binds, p->demand.uid);
        if (r == 0) {
            str_addf(text, "; pod %s is planned anew", p->demand.name);
            continue;
        }
        str_addf(text, "; %s", err.text);
        if (moved)
            continue; /* kube-scheduler refuses it until that has succeeded */
        take_back(g, pods->pods[i]);
        if (old[i])
            give_again(g, pods->pods[i], old[i]);
    }
}

/* False: there is no other place, and they are where they were. */
static bool move(struct gate_controller *g, struct gate_note *note,
                 const struct gate_unit *pods, struct str *text)
{
    struct allocation **old = xcalloc(pods->n + 1, sizeof *old);
    cleanup_gate_placing struct gate_placing placing = {0};
    for (size_t i = 0; i < pods->n; i++) {
        old[i] = place_of(g, pods->pods[i]);
        take_back(g, pods->pods[i]);
    }
    int r = find_others(g, note, pods, old, &placing, text);
    if (r == 0)
        reopen_all(g, pods, old, &placing, text);
    for (size_t i = 0; i < pods->n; i++) {
        if (r < 0 && old[i])
            give_again(g, pods->pods[i], old[i]);
        allocation_unref(old[i]);
    }
    free(old);
    return r == 0;
}

/* --- which of them ---------------------------------------------------------------- */

static bool are_all(struct gate_controller *g, const struct gate_unit *pods,
                    bool (*is_so)(struct gate_controller *g,
                                  const struct gate_pod *p))
{
    for (size_t i = 0; i < pods->n; i++)
        if (!is_so(g, pods->pods[i]))
            return false;
    return true;
}

static bool is_controlled(struct gate_controller *g, const struct gate_pod *p)
{
    (void)g;
    return p->controlled;
}

bool gate_plan_anew(struct gate_controller *g, const struct gate_unit *unit,
                    struct gate_note *note, struct str *text)
{
    const struct gate_pod *cause = NULL;
    cleanup_gate_unit struct gate_unit pods = {0};
    for (size_t i = 0; i < unit->n && !cause; i++)
        cause = is_refused(unit->pods[i]) ? unit->pods[i] : NULL;
    gate_unit_select(unit, is_to_go, unit, &pods);
    cleanup_with(allocation) struct allocation *a = place_of(g, cause);
    const char *node = a ? a->node : "";
    str_addf(text,
             "kube-scheduler refuses pod %s on node %s, for which it was "
             "planned: its own reason is in the pod's events",
             cause->demand.name, node);
    if (pods.n == 0) {
        str_add(text, "; a pod of its pair is there already, so it waits for "
                      "that node");
        return false;
    }
    note->anew_ms = clock_ms() + backoff_grown(GATE_AGAIN_MS, GATE_AGAIN_MAX_MS,
                                               ++note->anew);
    if (are_all(g, &pods, gate_is_movable) && move(g, note, &pods, text))
        return true;
    if (are_all(g, &pods, is_controlled)) {
        replace_all(g, note, &pods, text);
        return true;
    }
    str_add(text, "; no controller would make its pair anew: delete its pods "
                  "and create them again, or make room on that node");
    return false;
}
