/* Opens gates through the binder, which sees to it that what was decided is
 * true or given back. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "extender/gate/gate_controller_private.h"
#include "extender/gate/gate_open.h"
#include "lib/base/backoff.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"

enum {
    PATCH_MAX = 2 << 20,
    RETRY_MS = 500, /* after a gate could not be opened; doubled each time */
    RETRY_MAX_MS = 30000,
};

/* One gate that is being opened. */
struct opening {
    struct pod_bind bind;
    struct gate_controller *g;
    char key[JOB_LEASE_KEY_MAX]; /* of its unit */
    struct gate_placed placed;
};

static void opening_free(struct opening *o)
{
    gate_placed_fini(&o->placed);
    free((char *)o->bind.patch);
    free(o);
}

/* With the lock. */
static void try_later(struct gate_controller *g, const char *key,
                      const char *error)
{
    struct gate_told *t = gate_told_of(g, key);
    free(t->text);
    t->judged = false;
    t->text = xasprintf("its gate could not be opened: %s", error);
    t->failures++;
    t->not_before_ms = clock_ms() +
                       backoff_grown(RETRY_MS, RETRY_MAX_MS, t->failures);
    gate_changed(g); /* to learn when: a look that is under way may have seen
                      * it on its way still */
}

/* On a binder's thread. */
static void opened(struct pod_bind *bind, const char *result, const char *error)
{
    struct opening *o =
        (struct opening *)((char *)bind - offsetof(struct opening, bind));
    struct gate_controller *g = o->g;
    const struct demand *d = &o->placed.demand;
    bool is_open = !*error;
    log_event(is_open ? LOG_INFO : LOG_WARN, "gate", "namespace", d->namespace,
              "pod", d->name, "node", o->placed.node, "result", result, "error",
              error, NULL);
    if (!is_open)
        fit_nodes_forget(g->config.fit, d->uid);
    pthread_mutex_lock(&g->lock);
    struct gate_told *t = strmap_get(&g->told, o->key);
    if (is_open && t) /* else the watch was first, and it is forgotten */
        t->failures = 0;
    if (!is_open) { /* what is open stands there until the watch shows it */
        free(strmap_remove(&g->opening, d->uid));
        try_later(g, o->key, error);
    }
    pthread_mutex_unlock(&g->lock);
    opening_free(o);
}

static void write_patch(struct opening *o)
{
    struct str patch = STR_INIT(PATCH_MAX);
    const struct gate_placed *p = &o->placed;
    /* its card's claim says which node: the pod may be planned anew on
     * another one */
    bool by_affinity = claim_needs_cards(p->needs) == 0;
    gate_open_write(p, by_affinity, &patch);
    o->bind.patch_size = patch.size;
    o->bind.patch = str_steal(&patch);
}

static void open_one(struct gate_controller *g, const char *key,
                     struct gate_placed *placed)
{
    struct opening *o = xcalloc(1, sizeof *o);
    o->g = g;
    (void)snprintf(o->key, sizeof o->key, "%s", key);
    o->placed = *placed;
    memset(placed, 0, sizeof *placed);
    const struct demand *d = &o->placed.demand;
    o->bind = (struct pod_bind){.namespace = d->namespace,
                                .name = d->name,
                                .uid = d->uid,
                                .node = o->placed.node,
                                .demand = d,
                                .allocation = o->placed.allocation,
                                .allocation_size = o->placed.allocation_size,
                                .number = o->placed.number,
                                .created = o->placed.created,
                                .done = opened};
    write_patch(o);
    binds_post(g->config.binds, &o->bind);
}

static int pin_all(struct gate_controller *g, const char *key,
                   const struct gate_placing *placing, struct error *err)
{
    for (size_t i = 0; i < placing->n; i++) {
        const struct gate_placed *p = &placing->pods[i];
        int r = gate_pin_claims(g, p, err);
        if (r == 0)
            continue;
        struct error why = {0};
        (void)error_set(&why, -r,
                        "the claims of pod %s could not be pinned: "
                        "%s",
                        p->demand.name, err->text);
        *err = why;
        log_event(LOG_WARN, "gate-closed", "namespace", p->demand.namespace,
                  "pod", p->demand.name, "error", err->text, NULL);
        hold_lock(&g->lock);
        try_later(g, key, err->text);
        return r;
    }
    return 0;
}

/* Its card comes by a claim that kube-scheduler has not allocated yet. */
static bool is_to_follow(const struct gate_unit *unit,
                         const struct gate_placed *p)
{
    return p->demand.by_claim && claim_needs_cards(p->needs) == 0 &&
           gate_unit_claimer(unit, p->pod);
}

/* Those are planned again when the claim is theirs: it holds their places. */
static void put_off(struct gate_controller *g, const struct gate_unit *unit,
                    struct gate_placing *placing)
{
    size_t n = 0;
    for (size_t i = 0; i < placing->n; i++) {
        struct gate_placed p = placing->pods[i];
        const struct gate_placing alone = {.pods = &p, .n = 1};
        if (!is_to_follow(unit, &p)) {
            placing->pods[n++] = p;
            continue;
        }
        gate_unplace(&g->place, &alone, NULL);
        gate_placed_fini(&p);
    }
    placing->n = n;
}

int gate_open_all(struct gate_controller *g, const struct gate_unit *unit,
                  struct gate_placing *placing, struct error *err)
{
    const char *key = unit->key;
    put_off(g, unit, placing);
    int r = pin_all(g, key, placing, err);
    if (r < 0) {
        gate_unplace(&g->place, placing, err->text);
        return r;
    }
    pthread_mutex_lock(&g->lock);
    for (size_t i = 0; i < placing->n; i++) {
        const struct gate_placed *p = &placing->pods[i];
        struct gate_opening *o = strmap_remove(&g->opening, p->demand.uid);
        if (!o)
            o = xcalloc(1, sizeof *o);
        memcpy(o->uid, p->demand.uid, sizeof o->uid);
        (void)strmap_put(&g->opening, o->uid, o);
    }
    pthread_mutex_unlock(&g->lock);
    for (size_t i = 0; i < placing->n; i++)
        open_one(g, key, &placing->pods[i]);
    return 0;
}
