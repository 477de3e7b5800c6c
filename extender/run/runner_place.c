/* Who gets a place, in which order, and what the others are told. */
#include <stdlib.h>
#include <string.h>

#include "extender/judge/job_missing.h"
#include "extender/judge/why.h"
#include "extender/pods/applied_uid.h"
#include "extender/pods/pod_files.h"
#include "extender/run/runner_private.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"

enum {
    TRIES_MAX = 1024, /* of one look */
    AGAIN_MAX = 512,  /* of them, at units that looks before it have tried */
    WHY_MAX = 65536,
    KEY_MAX = DEMAND_NAMESPACE_MAX + DEMAND_NAME_MAX + 2,
};

/* Since when a job is placed in part. */
struct stuck {
    char key[KEY_MAX];
    int64_t since_ms;
    uint64_t round; /* the last one that has found it so */
};

static bool is_pending(const struct member *m)
{
    return !m->place && !member_is_over(m);
}

/* Never began: it is in the way of its job beginning. */
static bool is_absent(const struct member *m)
{
    return m->pod->deleting || m->pod->ended == POD_STATE_FAILED;
}

static void tell_pending(struct look *l, const struct group *g,
                         const char *reason, const char *message)
{
    for (size_t i = 0; i < g->n; i++)
        if (is_pending(&g->members[i]))
            look_tell(l, &g->members[i], POD_STATE_PENDING, reason, message);
}

/* --- is a job whole? ---------------------------------------------------- */

/* What of the job was not applied; false when nothing is missing. */
static bool find_missing(const struct group *g, struct str *out)
{
    cleanup_free struct job_member *members = xcalloc(g->n + 1,
                                                      sizeof *members);
    for (size_t i = 0; i < g->n; i++) {
        const struct demand *d = &g->members[i].pod->demand;
        members[i] = (struct job_member){
            .role = d->role,
            .pair = d->pair,
            .cards = d->cards,
            .pair_cards = d->pair_cards,
            .counted = !is_absent(&g->members[i]),
        };
    }
    return job_missing(members, g->n, g->size, "applied", out);
}

/* --- what is known already ---------------------------------------------- */

static struct wait *wait_of(struct look *l, const struct member *m)
{
    struct wait *w = strmap_get(&l->r->waits, m->pod->uid);
    if (!w) {
        w = xcalloc(1, sizeof *w);
        memcpy(w->uid, m->pod->uid, sizeof w->uid);
        (void)strmap_put(&l->r->waits, w->uid, w);
    }
    w->round = l->r->round;
    return w;
}

static uint64_t sum_configs(const struct pod_set *set)
{
    uint64_t newest = 0;
    for (size_t i = 0; i < set->n_configs; i++)
        if (set->configs[i]->version > newest)
            newest = set->configs[i]->version;
    return hash_mix(newest, set->n_configs + 1) | 1;
}

/* Has it been said already that it waits, and why? */
static bool is_told(const struct member *m, const char *reason)
{
    const struct pod_status *s = m->pod->status;
    return s->state == POD_STATE_PENDING && strcmp(s->reason, reason) == 0;
}

/* --- can it run? -------------------------------------------------------- */

static int check_pod(const struct look *l, const struct applied_pod *p,
                     struct error *err)
{
    char text[APPLIED_MESSAGE_MAX + 1];
    if (!p->fault)
        return pod_files_check(l->set, p, err);
    fault_text(p, text);
    return error_set(err, EDOM, "%s", text);
}

/* The reason, "" none, and what to do; both as told before when nothing has
 * changed since. */
static const char *find_fault(struct look *l, const struct member *m,
                              struct error *err)
{
    static const char *const reasons[] = {"ConfigMissing", "SpecRefused",
                                          NOT_UNDERSTOOD};
    struct wait *w = wait_of(l, m);
    if (!l->configs)
        l->configs = sum_configs(l->set);
    bool known = w->configs == l->configs;
    if (known && w->is_right)
        return "";
    for (size_t i = 0; known && i < ARRAY_LEN(reasons); i++)
        if (is_told(m, reasons[i])) {
            (void)error_set(err, EINVAL, "%s", m->pod->status->message);
            return reasons[i];
        }
    int r = check_pod(l, m->pod, err);
    w->configs = l->configs;
    w->is_right = r == 0;
    return r == 0 ? "" : reasons[r == -ENOENT ? 0 : r == -EDOM ? 2 : 1];
}

static bool check_specs(struct look *l, const struct group *g)
{
    for (size_t i = 0; i < g->n; i++) {
        const struct member *m = &g->members[i];
        struct error err = {0};
        const char *reason = is_pending(m) ? find_fault(l, m, &err) : "";
        if (!*reason)
            continue;
        look_tell(l, m, POD_STATE_PENDING, reason, err.text);
        for (size_t k = 0; k < g->n; k++) {
            char text[APPLIED_MESSAGE_MAX + 1];
            (void)snprintf(text, sizeof text, "waits for pod %s: %.400s",
                           m->pod->name, err.text);
            if (k == i || !is_pending(&g->members[k]))
                continue;
            if (g->members[k].pod->fault)
                fault_text(g->members[k].pod, text);
            look_tell(l, &g->members[k], POD_STATE_PENDING,
                      g->members[k].pod->fault ? NOT_UNDERSTOOD
                                               : "PairIncomplete",
                      text);
        }
        return false;
    }
    return true;
}

/* --- units -------------------------------------------------------------- */

/* An xPU pod of the pair has failed: its host pod does not begin alone. */
static bool has_failed_xpu(struct look *l, const struct group *pair)
{
    for (size_t i = 0; i < pair->n; i++) {
        const struct applied_pod *p = pair->members[i].pod;
        char text[APPLIED_MESSAGE_MAX + 1];
        if (p->demand.role != ROLE_XPU || p->deleting ||
            p->ended != POD_STATE_FAILED)
            continue;
        (void)snprintf(text, sizeof text,
                       "xPU pod %s of its pair has failed (%s): delete that "
                       "pod, and apply it again",
                       p->name, p->end->reason);
        tell_pending(l, pair, "XpuPodFailed", text);
        return true;
    }
    return false;
}

static void unit_add(struct look *l, const struct group *g)
{
    struct unit u = {.group = *g, .priority = INT64_MIN, .number = UINT64_MAX};
    for (size_t i = 0; i < g->n; i++) {
        const struct applied_pod *p = g->members[i].pod;
        if (!is_pending(&g->members[i]))
            continue;
        if (p->demand.priority > u.priority)
            u.priority = p->demand.priority;
        if (p->number < u.number)
            u.number = p->number;
    }
    if (u.number == UINT64_MAX || !check_specs(l, g))
        return;
    l->units = xgrow(l->units, l->n_units, &l->units_cap, sizeof *l->units);
    l->units[l->n_units++] = u;
}

static void group_key(const struct group *g, char ret_key[KEY_MAX])
{
    const struct demand *d = &g->members[0].pod->demand;
    (void)snprintf(ret_key, KEY_MAX, "%s/%s", d->namespace, d->job);
}

static void unstick(struct look *l, const struct group *g)
{
    char key[KEY_MAX];
    if (g->size <= 1)
        return;
    group_key(g, key);
    free(strmap_remove(&l->r->stuck, key));
}

void look_pending(struct look *l, const struct group *g)
{
    size_t end, n_pending = 0;
    for (size_t i = 0; i < g->n; i++)
        n_pending += is_pending(&g->members[i]);
    if (n_pending == 0) {
        unstick(l, g);
        return;
    }
    if (g->size > 1) {
        cleanup_str struct str text = STR_INIT(APPLIED_MESSAGE_MAX);
        if (find_missing(g, &text))
            tell_pending(l, g, "JobIncomplete", str_text(&text));
        else
            unit_add(l, g);
        return;
    }
    for (size_t i = 0; i < g->n; i = end) {
        for (end = i + 1; end < g->n && g->members[end].pod->demand.pair ==
                                            g->members[i].pod->demand.pair;
             end++)
            ;
        const struct group pair = {g->members + i, end - i, g->size};
        if (!member_has_job(pair.members) || !has_failed_xpu(l, &pair))
            unit_add(l, &pair);
    }
}

/* --- placing ------------------------------------------------------------ */

/* As pod_set_demand() has it of a pod of the group. */
static void group_demand(const struct group *g, const struct member *m,
                         struct demand *ret_demand)
{
    *ret_demand = m->pod->demand;
    ret_demand->runs = 0;
    for (size_t i = 0; i < g->n; i++)
        applied_pod_join(g->members[i].pod, ret_demand);
}

/* By wall time, as it may have been applied before this start. */
static void count_wait(struct metrics *m, const struct applied_pod *p)
{
    int64_t applied_ms = applied_uid_time_ms(p->uid);
    if (applied_ms)
        app_metrics_waited(m, pod_role_name(p->demand.role),
                           clock_wall_ns() / 1000000 - applied_ms);
}

/* 0; -EBUSY and why not; -EAGAIN: the store did not take it. */
static int place(struct look *l, const struct group *g, const struct member *m,
                 struct str *why_not)
{
    const struct pod_store *store = l->r->store;
    struct demand demand;
    const struct demand *d = &demand;
    struct wait *w = wait_of(l, m);
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(store->writer);
    group_demand(g, m, &demand);
    if (w->no_place == s->news + 1 && w->runs == d->runs &&
        w->cores == d->card_cores && w->memory_mib == d->card_memory_mib &&
        is_told(m, "NoPlace")) {
        str_add(why_not, m->pod->status->message);
        return -EBUSY;
    }
    l->tries++;
    cleanup_why struct why why;
    why_init(&why, s, d, store->plans, NULL);
    if (why.n_fitting == 0) {
        w->no_place = s->news + 1;
        w->runs = d->runs;
        w->cores = d->card_cores;
        w->memory_mib = d->card_memory_mib;
        why_summary(&why, why_not);
        return -EBUSY;
    }
    struct writer_op op = {.kind = WRITER_BIND,
                           .node = snapshot_node(s, (size_t)why.best[0])->name,
                           .demand = d,
                           .out = STR_INIT(STR_MAX_DEFAULT)};
    int r = writer_run(store->writer, &op);
    str_fini(&op.out);
    const char *result = r == 0 ? (op.created ? "bound" : "repeated")
                         : r == -EBUSY || r == -EEXIST ? "refused"
                                                       : "error";
    metrics_count(store->metrics, APP_BINDS, result);
    if (r == 0 && op.created)
        count_wait(store->metrics, m->pod);
    log_event(r < 0 ? LOG_WARN : LOG_INFO, "bind", "namespace", d->namespace,
              "pod", d->name, "node", op.node, "result", result, "error",
              op.error.text, NULL);
    if (r == 0)
        return 0;
    str_add(why_not, op.error.text);
    return r == -EBUSY || r == -EEXIST ? -EBUSY : -EAGAIN;
}

/* Nothing of the job ever ran, but part of it has places. */
static bool is_half_begun(const struct look *l, const struct group *g)
{
    bool begun = false, hosts = false;
    for (size_t i = 0; i < g->n; i++)
        hosts = hosts || g->members[i].pod->demand.role == ROLE_HOST;
    for (size_t i = 0; i < g->n; i++) {
        const struct member *m = &g->members[i];
        if (!m->place || member_is_over(m))
            continue;
        begun = true;
        if ((!hosts || m->pod->demand.role == ROLE_HOST) &&
            (m->pod->status->ready || m->told.was_ready ||
             m->pod->status->ran == APPLIED_RAN_ONCE))
            return false;
        /* what its node has not told since our start may well run */
        if (m->told.state == POD_STATE_PENDING && !member_never_began(l, m) &&
            node_reports_asked_ago(l->r->store->reports, m->place->node,
                                   clock_ms()) < 0)
            return false;
    }
    return begun && g->size > 1;
}

/* A job that is placed in part keeps others from their places: not for ever. */
static void watch_stuck(struct look *l, const struct group *g,
                        const struct member *lacking, const char *why)
{
    char key[KEY_MAX];
    if (!is_half_begun(l, g)) {
        unstick(l, g);
        return;
    }
    group_key(g, key);
    struct stuck *stuck = strmap_get(&l->r->stuck, key);
    if (!stuck) {
        stuck = xcalloc(1, sizeof *stuck);
        memcpy(stuck->key, key, sizeof key);
        stuck->since_ms = clock_ms();
        (void)strmap_put(&l->r->stuck, stuck->key, stuck);
    }
    stuck->round = l->r->round;
    int64_t due_ms = stuck->since_ms + RUNNER_STUCK_MS;
    if (due_ms <= clock_ms()) {
        look_tear_down(l, g, lacking, why);
        look_post(l);
        unstick(l, g);
    } else if (due_ms < l->due_ms) {
        l->due_ms = due_ms;
    }
}

/* Of jobs that this round has not found placed in part: what comes under that
 * name later is another. */
static void forget_stuck(struct runner *r)
{
    size_t pos = 0;
    for (struct stuck *s; (s = strmap_next(&r->stuck, &pos));) {
        if (s->round == r->round)
            continue;
        free(strmap_remove(&r->stuck, s->key));
        pos = 0; /* others have moved */
    }
}

static void unit_place(struct look *l, const struct unit *u)
{
    const struct group *g = &u->group;
    const struct member *lacking = NULL;
    cleanup_str struct str why = STR_INIT(WHY_MAX);
    for (size_t i = 0; i < g->n && !lacking; i++) {
        const struct member *m = &g->members[i];
        int r = is_pending(m) ? place(l, g, m, &why) : 0;
        l->failed |= r == -EAGAIN;
        l->acted |= is_pending(m) && r == 0;
        if (r < 0)
            lacking = m;
    }
    if (!lacking)
        return;
    bool before = true;
    for (size_t i = 0; i < g->n; i++) {
        const struct member *m = &g->members[i];
        char text[APPLIED_MESSAGE_MAX + 1];
        if (m == lacking) {
            look_tell(l, m, POD_STATE_PENDING, "NoPlace", str_text(&why));
            before = false;
        } else if (is_pending(m) && !before) {
            (void)snprintf(text, sizeof text, "waits for pod %s: %.400s",
                           lacking->pod->name, str_text(&why));
            look_tell(l, m, POD_STATE_PENDING,
                      g->size > 1 ? "JobNotPlaced" : "PairNotPlaced", text);
        }
    }
    watch_stuck(l, g, lacking, str_text(&why));
}

/* Of pods that do not wait any more. */
static void forget_waits(struct runner *r)
{
    size_t n = 0, pos = 0;
    cleanup_free struct wait **over = xcalloc(r->waits.n + 1, sizeof *over);
    for (struct wait *w; (w = strmap_next(&r->waits, &pos));)
        if (w->round != r->round)
            over[n++] = w;
    for (size_t i = 0; i < n; i++) {
        (void)strmap_remove(&r->waits, over[i]->uid);
        free(over[i]);
    }
}

static int compare_units(const void *p, const void *q)
{
    const struct unit *a = p, *b = q;
    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

/* The first that the last look has not tried. */
static size_t first_unit(const struct look *l)
{
    const struct unit from = {.priority = l->r->priority,
                              .number = l->r->number};
    size_t i = 0;
    while (l->r->resumes && i < l->n_units &&
           compare_units(&l->units[i], &from) < 0)
        i++;
    return i;
}

/* Those before `end`: for them there may be room by now, and they go first. */
static void place_again(struct look *l, size_t end)
{
    for (size_t i = 0; i < end && !l->failed && l->tries < AGAIN_MAX &&
                       !runner_is_stopping(l->r);
         i++)
        unit_place(l, &l->units[i]);
}

void look_place(struct look *l)
{
    struct runner *r = l->r;
    bool resumed = r->resumes;
    if (l->n_units > 0)
        qsort(l->units, l->n_units, sizeof *l->units, compare_units);
    size_t i = first_unit(l);
    r->resumes = false;
    place_again(l, i);
    for (; i < l->n_units && !l->failed && !r->resumes; i++) {
        if (runner_is_stopping(r))
            return;
        r->resumes = l->tries >= TRIES_MAX;
        r->priority = l->units[i].priority;
        r->number = l->units[i].number;
        if (!r->resumes)
            unit_place(l, &l->units[i]);
    }
    if (resumed || r->resumes)
        l->due_ms = 0; /* the rest; or those before, for what is new since */
    if (l->failed || r->resumes)
        return;
    forget_stuck(r);
    forget_waits(r);
}
