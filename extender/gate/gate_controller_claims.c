/* Puts pinned claims in the place of those that a pod has, before its gate is
 * opened, and again when it is planned anew. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "extender/gate/gate_claims.h"
#include "extender/gate/gate_controller_private.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"

enum {
    PATH_MAX_BYTES = 2048,
    BODY_MAX = 2 << 20,
    OWNED_MAX = 64, /* claims of one pod that are looked at */
    UNNAMED_MS = 5000,
};

static int call(struct gate_controller *g, const char *method,
                const struct str *path, enum kube_body type,
                const struct str *body, struct error *err)
{
    const struct kube_request request = {.method = method,
                                         .path = str_text(path),
                                         .type = type,
                                         .body = body ? body->data : NULL,
                                         .body_size = body ? body->size : 0,
                                         .timeout_ms = GATE_CALL_MS};
    if (!gate_may_write(g))
        return error_set(err, EPERM, "this replica does not lead");
    return kube_call(g->client, &request, &g->answer, err);
}

static void claim_path(struct str *path, const char *namespace,
                       const char *name)
{
    kube_path_object(path, "/apis/resource.k8s.io/v1", namespace,
                     "resourceclaims", name);
}

/* One with the same pins may be there, from a call without an answer. */
static int create(struct gate_controller *g, const struct demand *pod,
                  const struct claim_book_pin *pin, const char *name,
                  struct error *err)
{
    cleanup_str struct str path = STR_INIT(PATH_MAX_BYTES);
    cleanup_str struct str body = STR_INIT(BODY_MAX);
    claim_path(&path, pod->namespace, NULL);
    gate_claim_write(pod, pin, name, &body);
    int r = call(g, "POST", &path, KUBE_JSON, &body, err);
    return r == -EEXIST ? 0 : r;
}

static int name_in_status(struct gate_controller *g,
                          const struct gate_placed *placed,
                          const struct gate_pinned *pinned, size_t n,
                          struct error *err)
{
    const struct demand *pod = &placed->demand;
    cleanup_str struct str path = STR_INIT(PATH_MAX_BYTES);
    cleanup_str struct str body = STR_INIT(BODY_MAX);
    kube_path_object(&path, "/api/v1", pod->namespace, "pods", pod->name);
    str_add(&path, "/status");
    gate_claim_write_status(pod, placed->node, pinned, n, &body);
    return call(g, "PATCH", &path, KUBE_STRATEGIC_PATCH, &body, err);
}

/* --- claims that pods do not name any more ------------------------------------- */

/* `known`: only as long as it is as the watch has shown it; NULL: anyhow. */
static int delete_claim(struct gate_controller *g, const char *namespace,
                        const char *name, const struct claim_fate *known,
                        struct error *err)
{
    cleanup_str struct str path = STR_INIT(PATH_MAX_BYTES);
    cleanup_str struct str body = STR_INIT(BODY_MAX);
    claim_path(&path, namespace, name);
    if (known)
        gate_write_delete(known->uid, known->version, &body);
    int r = call(g, "DELETE", &path, KUBE_JSON, known ? &body : NULL, err);
    return r == -ENOENT ? 0 : r; /* it goes with its pod */
}

/* The pod names another one in its place. */
static bool is_replaced(const struct gate_unnamed *u, const char *name,
                        const struct claim_fate *fate)
{
    for (size_t i = 0; i < u->n; i++)
        if (strcmp(u->pinned[i].pod_claim, fate->pod_claim) == 0)
            return strcmp(u->pinned[i].claim, name) != 0;
    return false;
}

/* Those that the pod named before and the watch has not shown yet; of others the
 * book tells from now on. */
static int delete_unheard(struct gate_controller *g, struct gate_unnamed *u,
                          struct error *err)
{
    for (size_t i = 0; i < u->n; i++) {
        struct gate_pinned *p = &u->pinned[i];
        struct claim_fate fate;
        int r = 0;
        if (!p->made[0])
            continue;
        if (strcmp(p->made, p->claim) != 0 &&
            !claim_book_find(g->config.claims, u->namespace, p->made, &fate))
            r = delete_claim(g, u->namespace, p->made, NULL, err);
        if (r < 0)
            return r;
        p->made[0] = '\0';
    }
    return 0;
}

/* `as_known`: -EBUSY when one is allocated, also if the watch has not shown that
 * yet; else such are left. */
static int delete_others(struct gate_controller *g,
                         const struct gate_unnamed *u, bool as_known,
                         struct error *err)
{
    int r = 0;
    char(*owned)[DEMAND_NAME_MAX + 1] = xcalloc(OWNED_MAX, sizeof *owned);
    size_t n = claim_book_owned(g->config.claims, u->uid, owned, OWNED_MAX);
    for (size_t i = 0; i < n && i < OWNED_MAX && r == 0; i++) {
        struct claim_fate fate;
        if (!claim_book_find(g->config.claims, u->namespace, owned[i], &fate) ||
            fate.deleting || !is_replaced(u, owned[i], &fate))
            continue;
        if (!fate.allocated)
            r = delete_claim(g, u->namespace, owned[i], as_known ? &fate : NULL,
                             err);
        else if (as_known)
            r = error_set(err, EBUSY, "claim %s is allocated", owned[i]);
    }
    free(owned);
    return r;
}

static void unnamed_init(struct gate_unnamed *u, const struct demand *pod,
                         struct gate_pinned *pinned, size_t n)
{
    memset(u, 0, sizeof *u);
    memcpy(u->namespace, pod->namespace, sizeof u->namespace);
    memcpy(u->uid, pod->uid, sizeof u->uid);
    u->pinned = pinned;
    u->n = n;
    u->due_ms = clock_ms() + UNNAMED_MS;
}

int gate_withdraw_claims(struct gate_controller *g, const struct demand *pod,
                         struct gate_pinned *pinned, size_t n,
                         struct error *err)
{
    struct gate_unnamed u;
    unnamed_init(&u, pod, pinned, n);
    return delete_others(g, &u, true, err);
}

static int delete_all(struct gate_controller *g, struct gate_unnamed *u,
                      struct error *err)
{
    int r = delete_unheard(g, u, err);
    return r < 0 ? r : delete_others(g, u, false, err);
}

static size_t find_unnamed(const struct gate_controller *g, const char *uid)
{
    size_t at = 0;
    while (at < g->n_unnamed && strcmp(g->unnamed[at].uid, uid) != 0)
        at++;
    return at;
}

/* Takes `pinned`. */
static void forget_others(struct gate_controller *g, const struct demand *pod,
                          struct gate_pinned *pinned, size_t n)
{
    size_t at = find_unnamed(g, pod->uid);
    if (at < g->n_unnamed) { /* what it named before is one of the others */
        free(g->unnamed[at].pinned);
        memmove(g->unnamed + at, g->unnamed + at + 1,
                (--g->n_unnamed - at) * sizeof *g->unnamed);
    }
    g->unnamed = xgrow(g->unnamed, g->n_unnamed, &g->unnamed_cap,
                       sizeof *g->unnamed);
    unnamed_init(&g->unnamed[g->n_unnamed++], pod, pinned, n);
}

static int delete_replaced(struct gate_controller *g, const struct demand *pod,
                           struct error *err)
{
    size_t at = find_unnamed(g, pod->uid);
    return at < g->n_unnamed ? delete_all(g, &g->unnamed[at], err) : 0;
}

int64_t gate_delete_unnamed(struct gate_controller *g)
{
    size_t n = 0;
    int64_t now_ms = clock_ms();
    for (; n < g->n_unnamed && g->unnamed[n].due_ms <= now_ms; n++) {
        struct error err = {0};
        if (delete_all(g, &g->unnamed[n], &err) < 0)
            log_event(LOG_WARN, "claim-not-deleted", "namespace",
                      g->unnamed[n].namespace, "pod-uid", g->unnamed[n].uid,
                      "error", err.text, NULL);
        free(g->unnamed[n].pinned);
    }
    g->n_unnamed -= n;
    if (n && g->n_unnamed)
        memmove(g->unnamed, g->unnamed + n, g->n_unnamed * sizeof *g->unnamed);
    return g->n_unnamed ? g->unnamed[0].due_ms : INT64_MAX;
}

void gate_unnamed_fini(struct gate_controller *g)
{
    for (size_t i = 0; i < g->n_unnamed; i++)
        free(g->unnamed[i].pinned);
    free(g->unnamed);
}

/* --- pinning ---------------------------------------------------------------------- */

int gate_make_claims(struct gate_controller *g,
                     const struct gate_placed *placed,
                     struct gate_pinned **ret_pinned, size_t *ret_n,
                     struct error *err)
{
    const struct demand *pod = &placed->demand;
    cleanup_claim_book_pins struct claim_book_pins pins = {0};
    *ret_pinned = NULL;
    *ret_n = 0;
    if (!placed->needs)
        return 0;
    cleanup_with(snapshot) struct snapshot *s =
        writer_snapshot(g->config.writer);
    const struct allocation *a = alloc_index_find_uid(s->allocations, pod->uid);
    int32_t node = snapshot_find(s, placed->node, strlen(placed->node));
    if (!a || node == NODE_NONE)
        return error_set(err, EAGAIN, "its place was taken back");
    int r = claim_book_pin(g->config.claims, placed->needs,
                           snapshot_node(s, (size_t)node), a, &pins, err);
    cleanup_free struct gate_pinned *pinned = xcalloc(pins.n + 1,
                                                      sizeof *pinned);
    size_t n = 0;
    for (size_t i = 0; i < pins.n && r == 0; i++) {
        if (!pins.items[i].pinned)
            continue;
        struct gate_pinned *p = &pinned[n++];
        (void)snprintf(p->pod_claim, sizeof p->pod_claim, "%s",
                       pins.items[i].name);
        (void)snprintf(p->made, sizeof p->made, "%s", pins.items[i].made);
        gate_claim_name(pod, &pins.items[i], p->claim);
        r = create(g, pod, &pins.items[i], p->claim, err);
    }
    if (r < 0)
        return r;
    *ret_pinned = steal(&pinned);
    *ret_n = n;
    return 0;
}

int gate_name_claims(struct gate_controller *g,
                     const struct gate_placed *placed,
                     struct gate_pinned **pinned, size_t n, struct error *err)
{
    int r = n ? name_in_status(g, placed, *pinned, n, err) : 0;
    if (r == 0 && n)
        forget_others(g, &placed->demand, steal(pinned), n);
    return r;
}

int gate_pin_claims(struct gate_controller *g, const struct gate_placed *placed,
                    struct error *err)
{
    cleanup_free struct gate_pinned *pinned = NULL;
    size_t n;
    int r = gate_make_claims(g, placed, &pinned, &n, err);
    r = r < 0 ? r : gate_name_claims(g, placed, &pinned, n, err);
    return r < 0 ? r : delete_replaced(g, &placed->demand, err);
}

/* Its affinity names its node, which nothing changes any more. */
static bool is_tied(const struct pod_needs *needs)
{
    size_t n = 0;
    for (size_t i = 0; i < needs->n_terms; i++)
        n += needs->terms[i].n_fields > 0;
    return needs->has_affinity && n == needs->n_terms;
}

bool gate_is_movable(struct gate_controller *g, const struct gate_pod *pod)
{
    if (!g->config.claims || !pod->needs || is_tied(pod->needs))
        return false;
    char(*owned)[DEMAND_NAME_MAX + 1] = xcalloc(OWNED_MAX, sizeof *owned);
    size_t n = claim_book_owned(g->config.claims, pod->demand.uid, owned,
                                OWNED_MAX);
    bool pinned = false, allocated = false;
    for (size_t i = 0; i < n && i < OWNED_MAX; i++) {
        struct claim_fate fate;
        if (!claim_book_find(g->config.claims, pod->demand.namespace, owned[i],
                             &fate))
            continue;
        pinned = pinned || fate.is_pinned;
        allocated = allocated || fate.allocated;
    }
    free(owned);
    return pinned && !allocated;
}
