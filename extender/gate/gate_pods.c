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
    size_t n_due; /* pods to do something about */
};

struct gate_pods {
    struct strmap pods;  /* the newest version of each, by uid */
    struct strmap units; /* by key */
    struct strmap due;   /* those with pods to do something about */
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
    strmap_fini(&g->due);
    strmap_fini_with(&g->units, unit_free);
    free(g);
}

/* Is there something to do about it? */
static bool is_active(const struct gate_pod *p)
{
    return !p->deleting && (p->state == GATE_CLOSED || p->refused_ms);
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
    if (is_active(p) && u->n_due++ == 0)
        (void)strmap_put(&g->due, u->key, u);
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
    if (is_active(p) && --u->n_due == 0)
        (void)strmap_remove(&g->due, key);
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

/* --- asking ----------------------------------------------------------------- */

static int compare_turns(const void *a, const void *b)
{
    const struct gate_turn *x = a, *y = b;
    if (x->priority != y->priority)
        return x->priority > y->priority ? -1 : 1;
    return (x->turn > y->turn) - (x->turn < y->turn);
}

struct gate_turn *gate_pods_turns(const struct gate_pods *g, size_t *ret_n)
{
    struct gate_turn *turns = xcalloc(g->due.n + 1, sizeof *turns);
    size_t n = 0, pos = 0;
    for (const struct unit *u; (u = strmap_next(&g->due, &pos));) {
        struct gate_turn t = {.priority = INT64_MIN, .turn = UINT64_MAX};
        for (size_t i = 0; i < u->n; i++) {
            const struct gate_pod *p = u->pods[i];
            if (!is_active(p))
                continue;
            if (p->demand.priority > t.priority)
                t.priority = p->demand.priority;
            if (p->turn < t.turn)
                t.turn = p->turn;
        }
        memcpy(t.key, u->key, sizeof t.key);
        turns[n++] = t;
    }
    qsort(turns, n, sizeof *turns, compare_turns);
    *ret_n = n;
    return turns;
}

static int compare_pods(const void *a, const void *b)
{
    const struct gate_pod *x = *(struct gate_pod *const *)a;
    const struct gate_pod *y = *(struct gate_pod *const *)b;
    if (x->demand.pair != y->demand.pair)
        return x->demand.pair < y->demand.pair ? -1 : 1;
    bool host = x->demand.role == ROLE_HOST;
    if (host != (y->demand.role == ROLE_HOST))
        return host ? -1 : 1;
    return (x->turn > y->turn) - (x->turn < y->turn);
}

bool gate_pods_unit(const struct gate_pods *g, const char *key,
                    struct gate_unit *ret_unit)
{
    const struct unit *u = strmap_get(&g->units, key);
    memset(ret_unit, 0, sizeof *ret_unit);
    if (!u)
        return false;
    memcpy(ret_unit->key, u->key, sizeof ret_unit->key);
    ret_unit->pods = xcalloc(u->n, sizeof *ret_unit->pods);
    ret_unit->n = u->n;
    for (size_t i = 0; i < u->n; i++)
        ret_unit->pods[i] = gate_pod_ref(u->pods[i]);
    qsort(ret_unit->pods, u->n, sizeof *ret_unit->pods, compare_pods);
    return true;
}

void gate_unit_fini(struct gate_unit *u)
{
    for (size_t i = 0; i < u->n; i++)
        gate_pod_unref(u->pods[i]);
    free(u->pods);
    memset(u, 0, sizeof *u);
}

void gate_unit_select(const struct gate_unit *u,
                      bool (*wants)(const void *ctx, const struct gate_pod *p),
                      const void *ctx, struct gate_unit *ret_unit)
{
    memset(ret_unit, 0, sizeof *ret_unit);
    memcpy(ret_unit->key, u->key, sizeof ret_unit->key);
    ret_unit->pods = xcalloc(u->n + 1, sizeof *ret_unit->pods);
    for (size_t i = 0; i < u->n; i++)
        if (wants(ctx, u->pods[i]))
            ret_unit->pods[ret_unit->n++] = gate_pod_ref(u->pods[i]);
}

/* The first pod of that pair, or of one after it. */
static size_t lower_bound(const struct gate_unit *u, int32_t pair)
{
    size_t low = 0, high = u->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (u->pods[middle]->demand.pair < pair)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t gate_unit_pair(const struct gate_unit *u, int32_t pair, size_t *ret_n)
{
    size_t first = lower_bound(u, pair);
    *ret_n = lower_bound(u, pair + 1) - first;
    return first;
}

struct gate_pod *gate_pods_find(const struct gate_pods *g,
                                const char *namespace, const char *name)
{
    size_t pos = 0;
    struct gate_pod *p;
    while ((p = strmap_next(&g->pods, &pos)))
        if (strcmp(p->demand.name, name) == 0 &&
            strcmp(p->demand.namespace, namespace) == 0)
            return gate_pod_ref(p);
    return NULL;
}

struct gate_pod *gate_pods_find_job(const struct gate_pods *g,
                                    const char *namespace, const char *job)
{
    size_t pos = 0;
    struct gate_pod *first = NULL, *p;
    while ((p = strmap_next(&g->pods, &pos)))
        if (p->state == GATE_CLOSED && strcmp(p->demand.job, job) == 0 &&
            strcmp(p->demand.namespace, namespace) == 0 &&
            (!first || p->turn < first->turn))
            first = p;
    return gate_pod_ref(first);
}

struct gate_pod *gate_pods_find_uid(const struct gate_pods *g, const char *uid)
{
    return gate_pod_ref(strmap_get(&g->pods, uid));
}

size_t gate_pods_count(const struct gate_pods *g)
{
    return g->n_active;
}

bool gate_pods_take_room(struct gate_pods *g, int64_t now_ms)
{
    bool long_ago = now_ms - g->turned_ms >= GATE_PODS_WHILE_MS;
    size_t most = long_ago ? GATE_PODS_MAX - 1 : GATE_PODS_ROOM;
    bool room = g->turned_away && g->n_active <= most;
    g->turned_away = g->turned_away && !room;
    return room;
}

/* --- judging ---------------------------------------------------------------- */

bool gate_pod_is_closed(const void *ctx, const struct gate_pod *p)
{
    (void)ctx;
    return p->state == GATE_CLOSED && !p->deleting;
}

const struct gate_pod *gate_unit_claimer(const struct gate_unit *u,
                                         const struct gate_pod *xpu)
{
    if (xpu->demand.role != ROLE_XPU || xpu->has_claims || xpu->in_group)
        return NULL;
    size_t n, first = gate_unit_pair(u, xpu->demand.pair, &n);
    for (size_t i = first; i < first + n; i++)
        if (u->pods[i]->has_claims && u->pods[i]->state != GATE_SETTLED)
            return u->pods[i];
    return NULL;
}

static bool is_refused(const struct gate_pod *p, int64_t now_ms)
{
    return p->refused_ms && !p->deleting &&
           now_ms - p->refused_ms >= GATE_REFUSED_MS;
}

/* A pod of it has a place: its other pods follow. */
static bool has_begun(const struct gate_unit *u)
{
    for (size_t i = 0; i < u->n; i++) {
        const struct gate_pod *p = u->pods[i];
        if (!p->deleting &&
            (p->state == GATE_OPENED || (p->bound && !p->finished)))
            return true;
    }
    return false;
}

/* As many pairs as its closed pods say: others may be left of an earlier job
 * of that name. */
static int32_t size_of(const struct gate_unit *u)
{
    for (size_t i = 0; i < u->n; i++)
        if (gate_pod_is_closed(NULL, u->pods[i]))
            return u->pods[i]->demand.job[0] ? u->pods[i]->demand.size : 1;
    return 1;
}

static bool lacks_pods(const struct gate_unit *u, struct str *text)
{
    cleanup_free struct job_member *members = xcalloc(u->n + 1,
                                                      sizeof *members);
    int32_t size = size_of(u);
    if (size <= 1 || has_begun(u))
        return false;
    for (size_t i = 0; i < u->n; i++) {
        const struct gate_pod *p = u->pods[i];
        members[i] = (struct job_member){.role = p->demand.role,
                                         .pair = p->demand.pair,
                                         .cards = p->demand.cards,
                                         .pair_cards = p->demand.pair_cards,
                                         .buddy = p->buddy,
                                         .counted = !p->deleting && !p->failed};
    }
    return job_missing(members, u->n, size, "there", text);
}

/* What one of its closed pods waits for. */
static bool is_held(const struct gate_pod *p, struct str *text)
{
    if (p->fault[0])
        str_addf(text, "pod %s cannot be planned: %s", p->demand.name,
                 p->fault);
    else if (p->other_gate[0])
        str_addf(text,
                 "pod %s has another scheduling gate, %s, which comes first",
                 p->demand.name, p->other_gate);
    else if (p->claims_due) /* or it would make them beside pinned ones */
        str_addf(text,
                 "pod %s waits for Kubernetes' resourceclaim controller to "
                 "make its claims of their templates",
                 p->demand.name);
    return p->fault[0] || p->other_gate[0] || p->claims_due;
}

enum gate_step gate_unit_judge_closed(const struct gate_unit *u,
                                      struct str *text)
{
    size_t n_closed = 0;
    for (size_t i = 0; i < u->n; i++)
        n_closed += gate_pod_is_closed(NULL, u->pods[i]);
    if (n_closed == 0)
        return GATE_NOTHING;
    for (size_t i = 0; i < u->n; i++)
        if (gate_pod_is_closed(NULL, u->pods[i]) && is_held(u->pods[i], text))
            return GATE_WAITS;
    return lacks_pods(u, text) ? GATE_WAITS : GATE_PLACE;
}

enum gate_step gate_unit_judge(const struct gate_unit *u, int64_t now_ms,
                               struct str *text)
{
    for (size_t i = 0; i < u->n; i++)
        if (is_refused(u->pods[i], now_ms))
            return GATE_REFUSED;
    return gate_unit_judge_closed(u, text);
}

int64_t gate_unit_due(const struct gate_unit *u, int64_t now_ms)
{
    int64_t due_ms = INT64_MAX;
    for (size_t i = 0; i < u->n; i++) {
        const struct gate_pod *p = u->pods[i];
        int64_t ms = p->refused_ms + GATE_REFUSED_MS;
        if (p->refused_ms && !p->deleting && ms > now_ms && ms < due_ms)
            due_ms = ms;
    }
    return due_ms;
}
