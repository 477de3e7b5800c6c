#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "extender/gate/gate_controller_private.h"
#include "lib/base/jwrite.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "lib/io/thread_name.h"

enum {
    IDLE_MS = 1000, /* while somebody else leads */
    REST = 4, /* times as long as a round was at units that find no place */
    REST_MAX_MS = 1000,
    TEXT_MAX = 8192,
    PATH_MAX_BYTES = 2048,
};

/* --- one unit ------------------------------------------------------------------- */

static uint64_t snapshot_news(const struct gate_controller *g)
{
    cleanup_with(snapshot) struct snapshot *s =
        writer_snapshot(g->config.writer);
    return s->news + 1;
}

static uint64_t claims_version(const struct gate_controller *g)
{
    return g->config.claims ? claim_book_version(g->config.claims) : 0;
}

/* Nothing has changed since it had no place. */
static bool is_known(const struct gate_controller *g,
                     const struct gate_note *note)
{
    return note->snapshot == snapshot_news(g) &&
           note->fit == fit_nodes_version(g->config.fit) &&
           note->claims == claims_version(g);
}

/* It has no place, or its claims cannot be planned, as things are. */
static void remember(const struct gate_controller *g, struct gate_note *note)
{
    note->snapshot = snapshot_news(g);
    note->fit = fit_nodes_version(g->config.fit);
    note->claims = claims_version(g);
}

/* A unit, and what was allocated when it was looked at. */
struct looked {
    const struct gate_unit *unit;
    const struct alloc_index *allocations;
};

/* The pod that it follows was opened, and its card comes by that one's claim. */
static const struct gate_pod *followed(const struct looked *l,
                                       const struct gate_pod *p)
{
    const struct gate_pod *claimer = gate_unit_claimer(l->unit, p);
    if (!claimer || claimer->state != GATE_OPENED)
        return NULL;
    const struct allocation *a = alloc_index_find_uid(l->allocations,
                                                      claimer->demand.uid);
    return a && a->demand.by_claim ? claimer : NULL;
}

static bool is_to_place(const void *ctx, const struct gate_pod *p)
{
    return gate_pod_is_closed(NULL, p) && !followed(ctx, p);
}

/* Its closed pods but those that follow another; what these wait for is
 * told. */
static void select_closed(struct gate_controller *g,
                          const struct gate_unit *unit,
                          struct gate_unit *ret_closed)
{
    cleanup_with(snapshot) struct snapshot *s =
        writer_snapshot(g->config.writer);
    const struct looked looked = {unit, s->allocations};
    gate_unit_select(unit, is_to_place, &looked, ret_closed);
    for (size_t i = 0; i < unit->n; i++) {
        const struct gate_pod *p = followed(&looked, unit->pods[i]);
        if (!p || !gate_pod_is_closed(NULL, unit->pods[i]))
            continue;
        cleanup_free char *text =
            xasprintf("pod %s waits until pod %s is bound, by whose claim it "
                      "has its card",
                      unit->pods[i]->demand.name, p->demand.name);
        gate_tell_quietly(g, unit->key, text, false);
        return;
    }
}

/* Returns when to look at it again. */
static int64_t place(struct gate_controller *g, const struct gate_unit *unit,
                     struct gate_note *note)
{
    cleanup_gate_placing struct gate_placing placing = {0};
    cleanup_gate_no_place struct gate_no_place no_place = {0};
    cleanup_gate_unit struct gate_unit closed = {0};
    struct error err = {0};
    int64_t begun_ns = clock_ns(), due_ms = clock_ms() + GATE_LOOK_MS;
    if (is_known(g, note) && note->evict_ms > clock_ms())
        return due_ms;
    struct gate_note *avoiding = gate_avoiding_of(g, unit, note);
    gate_note_trim(avoiding, clock_ms());
    select_closed(g, unit, &closed);
    if (closed.n == 0)
        return INT64_MAX; /* that the other is bound is heard */
    int r = gate_place(&g->place, &closed, &avoiding->avoid, &placing,
                       &no_place);
    if (r == 0 && gate_open_all(g, unit, &placing, &err) == 0) {
        note->snapshot = 0;
        return INT64_MAX; /* its end is heard */
    }
    if (r == 0) {
        gate_tell(g, unit, note, err.text, false);
        return due_ms;
    }
    remember(g, note); /* what becomes free while others are evicted is news */
    int64_t evict_ms = gate_make_room(g, note, &no_place, &no_place.text);
    gate_tell(g, unit, note, str_text(&no_place.text), no_place.no_room);
    g->spent_ns += clock_ns() - begun_ns;
    return evict_ms < due_ms ? evict_ms : due_ms;
}

/* With the lock: when to look at a unit of which a gate is being opened, or
 * could not be; 0: now. */
static int64_t opening_until(const struct gate_controller *g,
                             const struct gate_unit *unit)
{
    const struct gate_told *t = strmap_get(&g->told, unit->key);
    for (size_t i = 0; i < unit->n; i++)
        if (strmap_get(&g->opening, unit->pods[i]->demand.uid))
            return INT64_MAX; /* its end is heard */
    return t && t->not_before_ms > clock_ms() ? t->not_before_ms : 0;
}

/* Returns when to look at it again. */
static int64_t look_at(struct gate_controller *g, const char *key)
{
    cleanup_gate_unit struct gate_unit unit = {0};
    cleanup_str struct str text = STR_INIT(TEXT_MAX);
    pthread_mutex_lock(&g->lock);
    bool found = gate_pods_unit(g->pods, key, &unit);
    int64_t until_ms = found ? opening_until(g, &unit) : INT64_MAX;
    pthread_mutex_unlock(&g->lock);
    if (!found)
        return INT64_MAX;
    struct gate_note *note = gate_note_of(g, key);
    if (until_ms)
        return until_ms;
    int64_t now_ms = clock_ms();
    enum gate_step step = gate_unit_judge(&unit, now_ms, &text);
    struct gate_note *avoiding = gate_avoiding_of(g, &unit, note);
    if (step == GATE_REFUSED && avoiding->anew_ms > now_ms) {
        step = gate_unit_judge_closed(&unit, &text);
        if (step != GATE_PLACE)
            return avoiding->anew_ms;
    } else if (step == GATE_REFUSED) {
        cleanup_str struct str refused = STR_INIT(TEXT_MAX);
        if (!gate_plan_anew(g, &unit, avoiding,
                            &refused)) /* the others need not
                                                        * wait for it */
            step = gate_unit_judge_closed(&unit, &text);
        if (step != GATE_PLACE)
            gate_tell(g, &unit, note, str_text(&refused), false);
    } else if (step == GATE_WAITS) {
        gate_tell(g, &unit, note, str_text(&text), false);
    }
    if (step == GATE_PLACE)
        return place(g, &unit, note);
    return step == GATE_REFUSED ? now_ms + GATE_LOOK_MS
                                : gate_unit_due(&unit, now_ms);
}

bool gate_may_write(const struct gate_controller *g)
{
    return !g->config.may_write ||
           g->config.may_write(g->config.ctx, GATE_CALL_MS);
}

/* --- calls ----------------------------------------------------------------------- */

void gate_write_delete(const char *uid, const char *version, struct str *out)
{
    jwrite_object(out, NULL);
    jwrite_text(out, "apiVersion", "v1");
    jwrite_text(out, "kind", "DeleteOptions");
    jwrite_object(out, "preconditions");
    jwrite_text(out, "uid", uid);
    jwrite_known_text(out, "resourceVersion", version);
    jwrite_end_object(out);
    jwrite_end_object(out);
}

int gate_call(struct gate_controller *g, const char *method,
              const struct demand *pod, const char *tail, enum kube_body type,
              const struct str *body, struct error *err)
{
    cleanup_str struct str path = STR_INIT(PATH_MAX_BYTES);
    kube_path_object(&path, "/api/v1", pod->namespace, "pods", pod->name);
    str_add(&path, tail);
    const struct kube_request request = {.method = method,
                                         .path = str_text(&path),
                                         .type = type,
                                         .body = body->data,
                                         .body_size = body->size,
                                         .timeout_ms = GATE_CALL_MS};
    if (!gate_may_write(g))
        return error_set(err, EPERM, "this replica does not lead");
    return kube_call(g->client, &request, &g->answer, err);
}

/* --- the thread ----------------------------------------------------------------- */

static bool is_stopping(struct gate_controller *g)
{
    hold_lock(&g->lock);
    return g->stopping;
}

/* Called with the lock, which is let go meanwhile. */
static void look(struct gate_controller *g)
{
    size_t n;
    int64_t due_ms = INT64_MAX;
    cleanup_free struct gate_turn *turns = gate_pods_turns(g->pods, &n);
    g->dirty = false;
    pthread_mutex_unlock(&g->lock);
    g->round++;
    g->spent_ns = 0;
    for (size_t i = 0; i < n && !is_stopping(g); i++) {
        int64_t ms = look_at(g, turns[i].key);
        due_ms = ms < due_ms ? ms : due_ms;
    }
    gate_notes_forget(g);
    int64_t unnamed_ms = gate_delete_unnamed(g);
    due_ms = unnamed_ms < due_ms ? unnamed_ms : due_ms;
    int64_t now_ms = clock_ms(), rest_ms = REST * g->spent_ns / 1000000;
    rest_ms = now_ms + (rest_ms > REST_MAX_MS ? REST_MAX_MS : rest_ms);
    pthread_mutex_lock(&g->lock);
    if (g->dirty || due_ms < rest_ms)
        due_ms = rest_ms;
    g->due_ms = due_ms;
}

static void *gate_thread(void *ctx)
{
    struct gate_controller *g = ctx;
    thread_name("gates", NULL);
    hold_lock(&g->lock);
    while (!g->stopping) {
        int64_t now_ms = clock_ms();
        if (!g->listed || !gate_may_write(g))
            (void)clock_wait(&g->wake, &g->lock, now_ms + IDLE_MS);
        else if (g->due_ms > now_ms)
            (void)clock_wait(&g->wake, &g->lock, g->due_ms);
        else
            look(g);
    }
    return NULL;
}

/* --- what is heard --------------------------------------------------------------- */

void gate_changed(struct gate_controller *g)
{
    int64_t now_ms = clock_ms();
    if (g->dirty)
        return;
    g->dirty = true;
    if (g->due_ms > now_ms)
        g->due_ms = now_ms;
    pthread_cond_signal(&g->wake);
}

static void on_snapshot(void *ctx)
{
    struct gate_controller *g = ctx;
    hold_lock(&g->lock);
    if (gate_pods_count(g->pods))
        gate_changed(g);
}

/* A former leader may have opened it: it takes what its node has. */
static void assume(const struct gate_controller *g, const struct kube_pod *pod)
{
    cleanup_with(pod_needs) struct pod_needs *needs = NULL;
    cleanup_with(allocation) struct allocation *a = NULL;
    struct error ignored; /* cluster_pods tells what is wrong with it */
    if (!kube_pod_is_opened(pod) || kube_pod_is_finished(pod))
        return;
    if (kube_pod_allocation(pod, &a, &ignored) == 0 &&
        pod_needs_read(pod->json.data, pod->json.size, &needs, &ignored) == 0)
        fit_nodes_assume(g->config.fit, pod->demand.uid, a->node, needs);
}

/* With the lock. */
static void make_room(struct gate_controller *g)
{
    if (g->listed && gate_pods_take_room(g->pods, clock_ms()))
        g->config.relist(g->config.ctx);
}

/* With the lock.  Where no pod is to be planned or waits for kube-scheduler,
 * what becomes of others changes nothing. */
static void heard(struct gate_controller *g, size_t n_before)
{
    if (n_before || gate_pods_count(g->pods))
        gate_changed(g);
}

static void on_put(void *ctx, const struct kube_pod *pod)
{
    struct gate_controller *g = ctx;
    bool stray;
    assume(g, pod);
    pthread_mutex_lock(&g->lock);
    size_t n_before = gate_pods_count(g->pods);
    gate_pods_put(g->pods, pod, clock_ms(), &stray);
    const struct gate_opening *o = strmap_get(&g->opening, pod->demand.uid);
    if (o && !pod->place_gate)
        free(strmap_remove(&g->opening, pod->demand.uid));
    make_room(g);
    heard(g, n_before);
    pthread_mutex_unlock(&g->lock);
    if (stray)
        g->config.tell(g->config.ctx, &pod->demand, EVENTS_REFUSED,
                       "its gate biga.dev/place was opened by somebody else: "
                       "it is not planned, and no card is kept for it");
}

static void on_gone(void *ctx, const char *uid)
{
    struct gate_controller *g = ctx;
    hold_lock(&g->lock);
    size_t n_before = gate_pods_count(g->pods);
    gate_pods_gone(g->pods, uid);
    free(strmap_remove(&g->opening, uid));
    make_room(g);
    heard(g, n_before);
}

static void on_listed(void *ctx)
{
    struct gate_controller *g = ctx;
    hold_lock(&g->lock);
    g->listed = true;
    gate_changed(g);
    pthread_cond_signal(&g->wake); /* it may have waited for that alone */
}

struct pod_listener gate_controller_listener(struct gate_controller *g)
{
    return (struct pod_listener){on_put, on_gone, on_listed, g};
}

void gate_controller_wake(struct gate_controller *g)
{
    hold_lock(&g->lock);
    gate_changed(g);
    pthread_cond_signal(&g->wake); /* it may have waited for that alone */
}

/* --- asking ---------------------------------------------------------------------- */

/* With the lock. */
static enum gate_story tell_story(const struct gate_controller *g,
                                  const struct gate_pod *p,
                                  struct demand *ret_demand, struct str *text)
{
    char key[JOB_LEASE_KEY_MAX];
    if (!p || (p->state != GATE_CLOSED && !p->refused_ms))
        return GATE_STORY_NONE;
    job_lease_key(&p->demand, key);
    const struct gate_told *t = strmap_get(&g->told, key);
    *ret_demand = p->demand;
    if (strmap_get(&g->opening, p->demand.uid))
        str_add(text, "its gate is being opened");
    else if (t && t->text)
        str_add(text, t->text);
    else
        str_add(text, "its gate biga.dev/place is closed: the replica that "
                      "leads plans it");
    if (p->state == GATE_OPENED)
        return GATE_STORY_OPENED;
    return t && t->judged ? GATE_STORY_JUDGED : GATE_STORY_WAITS;
}

enum gate_story gate_controller_explain(struct gate_controller *g,
                                        const char *namespace, const char *name,
                                        struct demand *ret_demand,
                                        struct str *text)
{
    hold_lock(&g->lock);
    cleanup_with(gate_pod) struct gate_pod *p = gate_pods_find(g->pods,
                                                               namespace, name);
    return tell_story(g, p, ret_demand, text);
}

enum gate_story gate_controller_explain_job(struct gate_controller *g,
                                            const char *namespace,
                                            const char *job,
                                            struct demand *ret_demand,
                                            struct str *text)
{
    hold_lock(&g->lock);
    cleanup_with(gate_pod) struct gate_pod *p =
        gate_pods_find_job(g->pods, namespace, job);
    return tell_story(g, p, ret_demand, text);
}

void gate_controller_write(struct gate_controller *g, struct str *out)
{
    hold_lock(&g->lock);
    jwrite_object(out, "gates");
    jwrite_uint(out, "waiting", gate_pods_count(g->pods));
    jwrite_uint(out, "opening", g->opening.n);
    jwrite_end_object(out);
}

/* --- start and stop ---------------------------------------------------------------- */

static void begin(void *ctx, const char *uid)
{
    const struct gate_controller *g = ctx;
    binds_begin(g->config.binds, uid);
}

static void refuse(void *ctx, const struct demand *pod, const char *why)
{
    const struct gate_controller *g = ctx;
    const struct pod_bind b = {.namespace = pod->namespace,
                               .name = pod->name,
                               .uid = pod->uid,
                               .demand = pod};
    binds_refuse(g->config.binds, &b, why);
}

void gate_controller_destroy(struct gate_controller *g)
{
    if (!g)
        return;
    gate_pods_destroy(g->pods);
    kube_client_destroy(g->client);
    str_fini(&g->answer.body);
    gate_notes_fini(g);
    gate_unnamed_fini(g);
    strmap_fini_with(&g->opening, free);
    (void)pthread_cond_destroy(&g->wake);
    (void)pthread_mutex_destroy(&g->lock);
    free(g);
}

int gate_controller_start(const struct gate_config *config,
                          struct gate_controller **ret_gate, struct error *err)
{
    struct gate_controller *g = xcalloc(1, sizeof *g);
    g->config = *config;
    g->place = (struct gate_place_config){.writer = config->writer,
                                          .plans = config->plans,
                                          .fit = config->fit,
                                          .claims = config->claims,
                                          .demands = config->demands,
                                          .begin = begin,
                                          .refuse = refuse,
                                          .ctx = g};
    g->answer.body.max = KUBE_ANSWER_MAX;
    g->pods = gate_pods_create();
    (void)pthread_mutex_init(&g->lock, NULL); /* cannot fail on Linux */
    clock_wait_init(&g->wake);
    int r = kube_client_create(config->kube, GATE_CALL_MS, &g->client, err);
    if (r == 0) {
        int rc = pthread_create(&g->thread, NULL, gate_thread, g);
        r = rc ? error_errno(err, rc, "starting the thread of gates") : 0;
    }
    if (r < 0) {
        gate_controller_destroy(g);
        return r;
    }
    writer_watch(config->writer, on_snapshot, g);
    *ret_gate = g;
    return 0;
}

void gate_controller_quiesce(struct gate_controller *g)
{
    if (!g)
        return;
    writer_unwatch(g->config.writer, g);
    pthread_mutex_lock(&g->lock);
    g->stopping = true;
    pthread_cond_signal(&g->wake);
    pthread_mutex_unlock(&g->lock);
    (void)pthread_join(g->thread, NULL); /* it was started, once */
}
