#include "extender/gate/gate_pods.h"

#include <stdlib.h>
#include <string.h>

#include "extender/judge/job_missing.h"
#include "lib/base/mem.h"
#include "lib/base/strmap.h"
#include "model/claim/pod_claims.h"

/* Pods that are planned together, as they came. */
struct unit {
    char key[JOB_LEASE_KEY_MAX];
    struct gate_pod **pods; /* of `gate_pods.pods` */
    size_t n, cap;
};

struct gate_pods {
    struct strmap pods;  /* the newest version of each, by uid */
    struct strmap units; /* by key */
    size_t n_active;     /* pods that are not settled */
    bool turned_away;    /* one more, since there was room last */
    int64_t turned_ms;   /* the first of these */
    uint64_t turn;
};

struct gate_pods *gate_pods_create(void)
{
    return xcalloc(1, sizeof(struct gate_pods));
}

/* --- one pod -------------------------------------------------------------- */

struct gate_pod *gate_pod_ref(struct gate_pod *p)
{
    if (p)
        atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
    return p;
}

void gate_pod_unref(struct gate_pod *p)
{
    if (!p || atomic_fetch_sub(&p->refs, 1) > 1)
        return;
    pod_needs_unref(p->needs);
    free(p->json);
    free(p);
}

static void pod_free(void *pod)
{
    gate_pod_unref(pod);
}

/* One that breaks the contract says so as long as its gate is closed. */
static enum gate_state state_of(const struct kube_pod *pod)
{
    if (pod->node[0] || kube_pod_is_finished(pod))
        return GATE_SETTLED;
    if (pod->place_gate && (pod->broken || pod->demand.role != ROLE_NONE))
        return GATE_CLOSED;
    return pod->demand.role != ROLE_NONE && kube_pod_is_opened(pod)
               ? GATE_OPENED
               : GATE_SETTLED;
}

/* Its JSON has that text, of a constant. */
#define MENTIONS(p, text) \
    memmem((p)->json, (p)->json_size, text, sizeof(text) - 1)

static int read_claims(struct gate_pod *p, struct error *err)
{
    cleanup_pod_claims struct pod_claims claims = {0};
    p->has_claims = MENTIONS(p, "\"resourceClaims\"");
    p->in_group = MENTIONS(p, "\"schedulingGroup\"");
    int r = p->has_claims ? pod_claims_read(p->json, p->json_size, &claims, err)
                          : 0;
    for (size_t i = 0; i < claims.n; i++)
        p->claims_due = p->claims_due || (claims.items[i].template[0] &&
                                          !claims.items[i].made_known);
    return r;
}

/* What only those need that are still to be placed. */
static void read_spec(struct gate_pod *p, const struct kube_pod *pod)
{
    struct error err = {0};
    if (p->state == GATE_SETTLED)
        return;
    p->json = xmemdup(pod->json.data, pod->json.size);
    p->json_size = pod->json.size;
    bool broken = pod->broken || read_claims(p, &err) < 0;
    if (!broken && pod_needs_read(p->json, p->json_size, &p->needs, &err) < 0)
        broken = true;
    if (broken)
        (void)snprintf(p->fault, sizeof p->fault, "%.*s", GATE_FAULT_MAX - 1,
                       pod->broken ? pod->why.text : err.text);
}

static struct gate_pod *pod_create(const struct kube_pod *pod,
                                   const struct gate_pod *former,
                                   int64_t now_ms)
{
    struct gate_pod *p = xcalloc(1, sizeof *p);
    p->refs = 1;
    p->demand = pod->demand;
    p->state = state_of(pod);
    p->buddy = pod->demand.role == ROLE_HOST && pod->buddy[0];
    p->controlled = pod->controlled;
    p->never_preempts = pod->never_preempts;
    p->deleting = pod->deleting;
    p->finished = kube_pod_is_finished(pod);
    p->failed = pod->phase == POD_FAILED;
    p->bound = pod->node[0];
    memcpy(p->other_gate, pod->other_gate, sizeof p->other_gate);
    memcpy(p->owner, pod->controller_uid, sizeof p->owner);
    bool refused = p->state == GATE_OPENED && pod->unschedulable;
    if (refused)
        p->refused_ms = former && former->refused_ms ? former->refused_ms
                                                     : now_ms;
    read_spec(p, pod);
    return p;
}

/* --- units ------------------------------------------------------------------ */

static void unit_free(void *unit)
{
    struct unit *u = unit;
    free(u->pods);
    free(u);
}

void gate_pods_destroy(struct gate_pods *g)
{
    if (!g)
        return;
    strmap_fini_with(&g->pods, pod_free);
    strmap_fini_with(&g->units, unit_free);
    free(g);
}

static void join_unit(struct gate_pods *g, struct gate_pod *p)
{
    char key[JOB_LEASE_KEY_MAX];
    job_lease_key(&p->demand, key);
    struct unit *u = strmap_get(&g->units, key);
    if (!u) {
        u = xcalloc(1, sizeof *u);
        memcpy(u->key, key, sizeof key);
        (void)strmap_put(&g->units, u->key, u);
    }
    u->pods = xgrow(u->pods, u->n, &u->cap, sizeof *u->pods);
    u->pods[u->n++] = p;
}

static void leave_unit(struct gate_pods *g, const struct gate_pod *p)
{
    char key[JOB_LEASE_KEY_MAX];
    job_lease_key(&p->demand, key);
    struct unit *u = strmap_get(&g->units, key);
    size_t at = 0;
    while (u->pods[at] != p)
        at++;
    memmove(u->pods + at, u->pods + at + 1, (--u->n - at) * sizeof *u->pods);
    if (u->n)
        return;
    (void)strmap_remove(&g->units, key);
    unit_free(u);
}

/* The registry's reference goes. */
static void forget(struct gate_pods *g, struct gate_pod *p)
{
    leave_unit(g, p);
    (void)strmap_remove(&g->pods, p->demand.uid);
    g->n_active -= p->state != GATE_SETTLED;
    gate_pod_unref(p);
}

void gate_pods_gone(struct gate_pods *g, const char *uid)
{
    struct gate_pod *p = strmap_get(&g->pods, uid);
    if (p)
        forget(g, p);
}

void gate_pods_put(struct gate_pods *g, const struct kube_pod *pod,
                   int64_t now_ms, bool *ret_stray)
{
    struct gate_pod *former = strmap_get(&g->pods, pod->demand.uid);
    *ret_stray = false;
    struct gate_pod *p = pod_create(pod, former, now_ms);
    if (pod->demand.role == ROLE_NONE && !former && p->state == GATE_SETTLED) {
        gate_pod_unref(p);
        return;
    }
    if (!former && p->state != GATE_SETTLED && g->n_active >= GATE_PODS_MAX) {
        g->turned_ms = g->turned_away ? g->turned_ms : now_ms;
        g->turned_away = true;
        gate_pod_unref(p);
        return;
    }
    p->turn = former ? former->turn : g->turn++;
    *ret_stray = former && former->state == GATE_CLOSED &&
                 p->state == GATE_SETTLED && !p->finished && !pod->place_gate &&
                 !pod->allocation.data;
    if (former)
        forget(g, former);
    (void)strmap_put(&g->pods, p->demand.uid, p);
    g->n_active += p->state != GATE_SETTLED;
    join_unit(g, p);
}
