/* Several advertisers of one node against simkube, with faults drawn at
 * random: requests that fail before or after they took effect, that arrive
 * long after their sender gave up, restarts, outages, foreign hands, watches
 * that tell late, in part, or not at all.  After every change a reader looks at
 * the pool; in the end all has to be right.  Ten seeds, or $BIGA_SEEDS. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "advertiser/publish/kube_objects.h"
#include "advertiser/publish/publish_kube.h"
#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/io/log.h"
#include "tests/lib/sanitized.h"
#include "tests/lib/sim/simhost.h"
#include "tests/lib/sim/simkube.h"

enum {
    SEEDS = ROUNDS_OF(10),
    STEPS = 600,
    MACHINES = 3,
    TOPOS = 24,
    FLIGHTS = 64,
    NOTICES = 16,
    TIMEOUT_MS = 3000,
    LATE_MS = 40000, /* a request may still arrive after so long */
};

struct flight {
    struct publish_request request;
    int64_t at;
    char lease[24]; /* its uid, when it was sent */
};

struct notice {
    char name[SLICE_NAME_MAX + 1], version[KUBE_OBJECTS_TEXT_MAX + 1];
    bool gone;
};

struct advertiser {
    struct kube_machine *m; /* NULL: not running */
    bool watches;
    struct notice notices[NOTICES]; /* not seen yet; more than that: a gap */
    size_t n_notices;
    struct publish_config config;
    char boot[16], instance[16];
    int topo;
    bool waiting; /* for an answer: */
    int64_t answer_at;
    struct http_answer answer;
};

static struct world {
    struct simkube *kube;
    struct advertiser all[MACHINES];
    struct flight flights[FLIGHTS]; /* given up by their senders */
    size_t n_flights;
    bool down, quiet;
    bool foreign;       /* somebody else has written: */
    int64_t foreign_to; /* generations up to this one are not ours */
    unsigned starts;
    size_t n_sent;
} w;

static struct topo *topos[TOPOS];
static char hashes[TOPOS][17];
static uint64_t state;
static int64_t now;

static unsigned below(unsigned n)
{
    state += UINT64_C(0x9e3779b97f4a7c15);
    return (unsigned)(hash_mix(state, UINT64_C(0xd6e8feb86659fd93)) >> 20) % n;
}

static int64_t wall_us(void)
{
    return now * 1000;
}

static void make_topos(void)
{
    static const unsigned sizes[] = {1, 65, 66, 150, 3, 0};
    for (unsigned t = 0; t < TOPOS; t++) {
        char model[16];
        (void)snprintf(model, sizeof model, "model-%u", t);
        unsigned n = sizes[t % ARRAY_LEN(sizes)] + (t == 5);
        topos[t] = simhost_nics("h", n, model);
        slice_content_hash(topos[t], hashes[t]);
    }
}

/* --- the reader --------------------------------------------------------- */

static void look(void *ctx)
{
    char hash[17];
    int64_t generation;
    (void)ctx;
    enum simkube_pool pool = simkube_pool(w.kube, "h", hash, &generation);
    if (w.foreign && generation <= w.foreign_to)
        return;
    cr_assert_neq(pool, SIMKUBE_MIXED, "generation %lld",
                  (long long)generation);
    bool known = pool == SIMKUBE_NONE;
    for (size_t i = 0; i < TOPOS; i++)
        known |= strcmp(hashes[i], hash) == 0;
    cr_assert(known, "%s was never a topology", hash);
}

/* --- advertisers and the network ---------------------------------------- */

static void start(struct advertiser *a)
{
    (void)snprintf(a->boot, sizeof a->boot, "boot-%u", below(3));
    (void)snprintf(a->instance, sizeof a->instance, "i%u", w.starts++);
    a->config = (struct publish_config){
        .boot_id = a->boot,
        .heartbeat_ms = 10000,
        .backoff_min_ms = 500,
        .backoff_max_ms = 10000,
        .instance = a->instance,
        .namespace = "biga-nodes",
        .check_ms = 60000,
        .unix_us = wall_us,
    };
    a->topo = (int)below(TOPOS);
    a->m = publish_kube.create(&a->config, topos[a->topo], state, now);
    a->waiting = false;
    a->watches = below(4) > 0;
    a->n_notices = 0;
}

static void kill_(struct advertiser *a)
{
    publish_kube.destroy(a->m);
    a->m = NULL;
    a->waiting = false;
}

/* Generations are counted in the Lease: one that is claimed in another Lease
 * may have been used before, so what was sent then must not arrive now. */
static void lease_uid(char ret_uid[24])
{
    const cJSON *meta = cJSON_GetObjectItemCaseSensitive(
        simkube_find(w.kube, "/leases/", 0), "metadata");
    const char *uid =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(meta, "uid"));
    (void)snprintf(ret_uid, 24, "%s", uid ? uid : "");
}

/* It is given up, and arrives when nobody thinks of it any more, or never. */
static void delay(const struct publish_request *rq)
{
    if (w.n_flights == FLIGHTS || below(3) == 0)
        return;
    struct flight *f = &w.flights[w.n_flights++];
    f->at = now + 1 + below(LATE_MS);
    lease_uid(f->lease);
    f->request = *rq;
    f->request.body = STR_INIT(SLICE_BODY_MAX);
    str_add_n(&f->request.body, str_text(&rq->body), rq->body.size);
}

static void arrive(void)
{
    struct http_answer lost = {.body = STR_INIT(16 * SLICE_BODY_MAX)};
    for (size_t i = 0; i < w.n_flights;) {
        struct flight *f = &w.flights[i];
        if (f->at > now) {
            i++;
            continue;
        }
        char lease[24];
        lease_uid(lease);
        if (strcmp(lease, f->lease) == 0)
            simkube_call(w.kube, &f->request, &lost);
        str_fini(&f->request.body);
        *f = w.flights[--w.n_flights];
    }
    str_fini(&lost.body);
}

static void refuse(struct http_answer *answer)
{
    static const long statuses[] = {500, 503, 429, 403, 504};
    answer->status = statuses[below(ARRAY_LEN(statuses))];
    str_reset(&answer->body);
    str_add(&answer->body, "{\"message\":\"bad luck\"}");
}

static void send_(struct advertiser *a, const struct publish_request *rq)
{
    a->waiting = true;
    a->answer_at = now + 1 + below(30);
    w.n_sent++;
    unsigned fate = w.quiet ? 99 : below(100);
    if (w.down || fate < 4) { /* lost on the way */
        a->answer.status = 0;
        a->answer_at = now + (w.down ? 1 : TIMEOUT_MS);
    } else if (fate < 10) { /* late */
        delay(rq);
        a->answer.status = 0;
        a->answer_at = now + TIMEOUT_MS;
    } else if (fate < 14) {
        refuse(&a->answer);
    } else {
        simkube_call(w.kube, rq, &a->answer);
        if (fate < 18) { /* the answer is lost */
            a->answer.status = 0;
            a->answer_at = now + TIMEOUT_MS;
        } else if (fate < 20) {
            refuse(&a->answer); /* though it was done */
        }
    }
}

/* --- watches ------------------------------------------------------------ */

static void on_watch(void *ctx, const struct publish_notice *notice)
{
    (void)ctx;
    for (size_t i = 0; i < MACHINES; i++) {
        struct advertiser *a = &w.all[i];
        if (!a->m || !a->watches)
            continue;
        bool gap = a->n_notices == NOTICES;
        struct notice *n = &a->notices[gap ? NOTICES - 1 : a->n_notices++];
        (void)snprintf(n->name, sizeof n->name, "%s", gap ? "" : notice->name);
        (void)snprintf(n->version, sizeof n->version, "%s", notice->version);
        n->gone = notice->gone;
    }
}

/* Some of what has come, between two calls of the advertiser. */
static void see(struct advertiser *a)
{
    size_t n = w.quiet ? a->n_notices : below((unsigned)a->n_notices + 1);
    for (size_t i = 0; i < n; i++) {
        const struct notice *notice = &a->notices[i];
        publish_kube.notice(a->m,
                            &(struct publish_notice){
                                notice->name, notice->version, notice->gone},
                            now);
    }
    a->n_notices -= n;
    memmove(a->notices, a->notices + n, a->n_notices * sizeof *a->notices);
}

static void step(struct advertiser *a)
{
    struct publish_request rq = {.body = STR_INIT(SLICE_BODY_MAX)};
    if (!a->m)
        return;
    if (a->waiting && a->answer_at <= now) {
        const struct publish_answer answer = {
            .status = a->answer.status,
            .body = a->answer.body.data,
            .body_size = a->answer.body.size,
            .error = a->answer.status == 0 ? "no answer" : NULL};
        a->waiting = false;
        publish_kube.answer(a->m, now, &answer);
    }
    if (!a->waiting)
        see(a);
    if (!a->waiting && publish_kube.next(a->m, now, &rq))
        send_(a, &rq);
    if (a->m->m.due == PUBLISH_NEVER)
        kill_(a);
    str_fini(&rq.body);
}

static int64_t next_event(int64_t until)
{
    for (size_t i = 0; i < MACHINES; i++) {
        const struct advertiser *a = &w.all[i];
        if (!a->m)
            continue;
        int64_t at = a->waiting ? a->answer_at : a->m->m.due;
        until = at < until ? at : until;
    }
    for (size_t i = 0; i < w.n_flights; i++)
        until = w.flights[i].at < until ? w.flights[i].at : until;
    return until > now ? until : now;
}

static void run_until(int64_t until)
{
    while (now < until) {
        now = next_event(until);
        arrive();
        for (size_t i = 0; i < MACHINES; i++)
            step(&w.all[i]);
    }
}

/* --- fate --------------------------------------------------------------- */

static void edit(void)
{
    size_t n = simkube_count(w.kube, PUBLISH_COLLECTION);
    if (n == 0)
        return;
    size_t which = below((unsigned)n);
    cJSON *slice = simkube_find(w.kube, PUBLISH_COLLECTION, which);
    cJSON *spec = cJSON_GetObjectItemCaseSensitive(slice, "spec");
    cJSON *pool = cJSON_GetObjectItemCaseSensitive(spec, "pool");
    cJSON *generation = cJSON_GetObjectItemCaseSensitive(pool, "generation");
    int64_t g = (int64_t)generation->valuedouble;
    if (below(2)) {
        g += (int)below(5) - 1;
        cJSON_SetNumberValue(generation, (double)(g > 0 ? g : 1));
    } else {
        cJSON_DeleteItemFromObjectCaseSensitive(spec, "devices");
    }
    w.foreign = true;
    if (w.foreign_to < g)
        w.foreign_to = g;
    simkube_touch(w.kube, PUBLISH_COLLECTION, which);
}

static void change_topo(struct advertiser *a)
{
    if (!a->m || a->waiting)
        return;
    a->topo = (int)below(TOPOS);
    publish_kube.update(a->m, topos[a->topo], now);
}

static void replace_node(void)
{
    simkube_delete(w.kube, "/nodes/h");
    if (below(2))
        simkube_collect(w.kube);
    run_until(now + below(20000));
    simkube_add_node(w.kube, "h");
}

/* All want to write at the same time, and what they wrote goes away. */
static void scramble(void)
{
    for (int i = 0; i < 4; i++) {
        struct advertiser *a = &w.all[below(MACHINES)];
        if (!a->m)
            start(a);
        for (size_t j = 0; j < MACHINES; j++)
            change_topo(&w.all[j]);
        run_until(now + below(100));
        simkube_delete(w.kube,
                       below(2) ? PUBLISH_COLLECTION : "-xpu.biga.dev-0");
        run_until(now + below(50));
    }
}

static void strike(void)
{
    struct advertiser *a = &w.all[below(MACHINES)];
    unsigned what = below(100);
    if (what < 30)
        change_topo(a);
    else if (what < 40 && !a->m)
        start(a);
    else if (what < 45 && a->m)
        kill_(a);
    else if (what < 50 && a->m && !a->waiting)
        publish_kube.stop(a->m, true, now);
    else if (what < 55)
        simkube_delete(w.kube, below(3) ? "-xpu.biga.dev-1" : "/leases/");
    else if (what < 60)
        simkube_delete(w.kube, PUBLISH_COLLECTION);
    else if (what < 65)
        edit();
    else if (what < 67)
        replace_node();
    else if (what < 70)
        w.down = !w.down;
    else if (what < 75)
        scramble();
}

static const struct advertiser *holder(void)
{
    const cJSON *spec = cJSON_GetObjectItemCaseSensitive(
        simkube_find(w.kube, "/leases/", 0), "spec");
    const char *text = cJSON_GetStringValue(
        cJSON_GetObjectItemCaseSensitive(spec, "holderIdentity"));
    const struct advertiser *found = NULL;
    size_t n_held = 0;
    for (size_t i = 0; i < MACHINES; i++) {
        const struct kube_machine *m = w.all[i].m;
        n_held += m && m->held;
        if (m && text && strcmp(m->holder, text) == 0)
            found = &w.all[i];
    }
    cr_assert_leq(n_held, 1);
    return found;
}

/* When nothing happens any more all is as the holder of the Lease says. */
static void assert_right(uint64_t seed)
{
    char hash[17];
    int64_t generation;
    const struct advertiser *a = holder();
    cr_assert_not_null(a, "seed %llu: nobody holds it",
                       (unsigned long long)seed);
    cr_assert_eq(simkube_pool(w.kube, "h", hash, &generation), SIMKUBE_WHOLE,
                 "seed %llu", (unsigned long long)seed);
    cr_assert_str_eq(hash, hashes[a->topo], "seed %llu",
                     (unsigned long long)seed);
    cr_assert_eq(simkube_count(w.kube, PUBLISH_COLLECTION),
                 slice_count(topos[a->topo]));
    size_t n = simkube_count(w.kube, "/");
    simkube_collect(w.kube);
    cr_assert_eq(simkube_count(w.kube, "/"), n, "owners are right");
    const cJSON *notes = cJSON_GetObjectItemCaseSensitive(
        cJSON_GetObjectItemCaseSensitive(simkube_find(w.kube, "/nodes/h", 0),
                                         "metadata"),
        "annotations");
    cr_assert_str_eq(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(
                         notes, KUBE_OBJECTS_TOPOLOGY)),
                     hash);
    for (size_t i = 0; i < slice_count(topos[a->topo]); i++) {
        const cJSON *labels = cJSON_GetObjectItemCaseSensitive(
            cJSON_GetObjectItemCaseSensitive(
                simkube_find(w.kube, PUBLISH_COLLECTION, i), "metadata"),
            "annotations");
        cr_assert_str_eq(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(
                             labels, SLICE_ANNOTATION_BOOT_ID)),
                         a->boot);
    }
}

static void one_seed(uint64_t seed)
{
    memset(&w, 0, sizeof w);
    state = seed * UINT64_C(0x2545f4914f6cdd1d);
    now = 1000000;
    w.kube = simkube_create(look, NULL);
    simkube_watch(w.kube, on_watch, NULL);
    simkube_add_node(w.kube, "h");
    for (size_t i = 0; i < MACHINES; i++)
        w.all[i].answer.body = STR_INIT(16 * SLICE_BODY_MAX);
    start(&w.all[0]);
    for (int i = 0; i < STEPS; i++) {
        run_until(now + below(below(20) ? 400 : 20000));
        strike();
    }
    cr_assert_lt(w.n_sent, (size_t)STEPS * 30);

    w.quiet = true;
    w.down = false;
    run_until(now + 20000); /* who was stopping has ended */
    if (!w.all[0].m)
        start(&w.all[0]);
    run_until(now + 400000); /* what was late has arrived, and was healed */
    w.n_sent = 0;
    run_until(now + 120000);
    /* a beat each 10 s, checks, and looks at the holder of the Lease */
    cr_assert_leq(w.n_sent, 12 + 8 + 2 * (MACHINES - 1) * 5, "%zu", w.n_sent);
    assert_right(seed);

    for (size_t i = 0; i < MACHINES; i++) {
        kill_(&w.all[i]);
        str_fini(&w.all[i].answer.body);
    }
    while (w.n_flights > 0)
        str_fini(&w.flights[--w.n_flights].request.body);
    simkube_destroy(w.kube);
}

Test(publish_kube_random, pools_are_never_mixed_and_end_right, .timeout = 300)
{
    log_set_level((enum log_level)(LOG_ERROR + 1));
    make_topos();
    const char *from = getenv("BIGA_SEED"); /* to look at one of them */
    const char *more = getenv("BIGA_SEEDS");
    uint64_t first = from ? strtoull(from, NULL, 10) : 1;
    uint64_t n = more ? strtoull(more, NULL, 10) : SEEDS;
    for (uint64_t seed = first; seed < first + (from ? 1 : n); seed++)
        one_seed(seed);
    for (size_t i = 0; i < TOPOS; i++)
        topo_unref(topos[i]);
}
