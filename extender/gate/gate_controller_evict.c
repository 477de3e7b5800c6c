/* Makes room for a unit of higher priority: victims are evicted before its
 * gates open, by the Eviction API, which respects disruption budgets. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "extender/gate/gate_controller_private.h"
#include "extender/judge/victims.h"
#include "extender/leader/eviction.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"

enum {
    BODY_MAX = 2048,
    AGAIN_MS = 5000, /* between two looks for victims of a unit */
    VICTIMS_MAX = 4096,
};

/* Whom to evict; borrowed from the snapshot. */
struct chosen {
    const struct allocation **list;
    size_t n;
};

static bool is_chosen(const struct chosen *c, const struct allocation *a)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->list[i] == a)
            return true;
    return false;
}

static void choose(struct chosen *c, const struct victims *v)
{
    for (size_t i = 0; i < v->n && c->n < VICTIMS_MAX; i++)
        if (!is_chosen(c, v->named[i]))
            c->list[c->n++] = v->named[i];
}

static int64_t sum_priority(const struct victims *v)
{
    int64_t sum = 0;
    for (size_t i = 0; i < v->n; i++)
        sum += v->named[i]->demand.priority;
    return sum;
}

/* Of one node, those that are fewest, then of the lowest priority. */
static bool is_better(const struct victims *a, const struct victims *b)
{
    if (a->n != b->n)
        return a->n < b->n;
    return sum_priority(a) < sum_priority(b);
}

/* A job needs those of all its nodes, any other pod those of one. */
static void find(const struct gate_no_place *w, struct chosen *c)
{
    bool job = demand_is_planned(&w->demand) && w->demand.size > 1;
    struct victims *found = xcalloc(w->n_nodes + 1, sizeof *found);
    struct victims_ask *asks = xcalloc(w->n_nodes + 1, sizeof *asks);
    const struct victims *best = NULL;
    for (size_t i = 0; i < w->n_nodes; i++)
        asks[i].node = w->nodes[i];
    victims_find(w->snapshot, &w->demand, asks, w->n_nodes, found);
    for (size_t i = 0; i < w->n_nodes; i++) {
        if (!found[i].fits || found[i].n == 0)
            continue;
        if (job)
            choose(c, &found[i]);
        else if (!best || is_better(&found[i], best))
            best = &found[i];
    }
    if (best)
        choose(c, best);
    for (size_t i = 0; i < w->n_nodes; i++)
        victims_fini(&found[i]);
    free(found);
    free(asks);
}

static int evict(struct gate_controller *g, const struct demand *pod,
                 struct error *err)
{
    cleanup_str struct str body = STR_INIT(BODY_MAX);
    eviction_write(&(struct eviction){pod->namespace, pod->name, pod->uid},
                   &body);
    int r = gate_call(g, "POST", pod, "/eviction", KUBE_JSON, &body, err);
    return r == -ENOENT || r == -EBUSY ? 0 : r; /* it is gone */
}

static void remember(struct gate_note *note, const char *uid)
{
    if (strmap_get(&note->evicted, uid))
        return;
    char *own = xstrdup(uid);
    (void)strmap_put(&note->evicted, own, own);
}

static void evict_all(struct gate_controller *g, struct gate_note *note,
                      const struct gate_no_place *w, const struct chosen *c,
                      struct str *text)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct demand *victim = &c->list[i]->demand;
        struct error err = {0};
        int r = evict(g, victim, &err);
        log_event(r < 0 ? LOG_WARN : LOG_INFO, "gate-evict", "namespace",
                  victim->namespace, "pod", victim->name, "for", w->demand.name,
                  "error", err.text, NULL);
        if (r < 0) {
            str_addf(text,
                     "; pod %s/%s, of lower priority, could not be "
                     "evicted for it: %s",
                     victim->namespace, victim->name, err.text);
            return;
        }
        remember(note, victim->uid);
        cleanup_str struct str why = STR_INIT(EVENTS_TEXT_MAX);
        str_addf(&why, "evicted to make room for pod %s/%s of higher priority",
                 w->demand.namespace, w->demand.name);
        g->config.tell(g->config.ctx, victim, EVENTS_PREEMPTED, str_text(&why));
    }
}

/* Those that were evicted and still have their place; forgets the others. */
static size_t count_leaving(const struct snapshot *s, struct gate_note *note)
{
    size_t pos = 0;
    for (char *uid; (uid = strmap_next(&note->evicted, &pos));) {
        if (alloc_index_find_uid(s->allocations, uid))
            continue;
        free(strmap_remove(&note->evicted, uid));
        pos = 0; /* others have moved */
    }
    return note->evicted.n;
}

/* Evicts anew; adds to `text` what was done. */
static void evict_anew(struct gate_controller *g, struct gate_note *note,
                       const struct gate_no_place *no_place, struct str *text)
{
    struct chosen c = {xcalloc(VICTIMS_MAX, sizeof *c.list), 0};
    find(no_place, &c);
    if (c.n)
        str_addf(text,
                 "; room is made for it by evicting %zu pods of lower "
                 "priority, the first is %s/%s",
                 c.n, c.list[0]->demand.namespace, c.list[0]->demand.name);
    evict_all(g, note, no_place, &c, text);
    free(c.list);
}

int64_t gate_make_room(struct gate_controller *g, struct gate_note *note,
                       const struct gate_no_place *no_place, struct str *text)
{
    if (!no_place->no_room || !no_place->snapshot)
        return INT64_MAX;
    size_t leaving = count_leaving(no_place->snapshot, note);
    if (leaving || note->evict_ms > clock_ms())
        str_add(text, note->evict_text ? note->evict_text : "");
    if (leaving) {
        str_addf(text, "; %zu evicted pods have to end first", leaving);
        return INT64_MAX; /* which is heard */
    }
    if (note->evict_ms > clock_ms())
        return note->evict_ms;
    note->evict_ms = clock_ms() + AGAIN_MS;
    cleanup_str struct str done = STR_INIT(STR_MAX_DEFAULT);
    if (no_place->never_preempts)
        str_add(&done, "; nobody is evicted for it (preemptionPolicy: Never)");
    else
        evict_anew(g, note, no_place, &done);
    free(note->evict_text);
    note->evict_text = str_steal(&done);
    str_add(text, note->evict_text ? note->evict_text : "");
    return INT64_MAX;
}
