/* From what a kubelet gives to what is said of it: both sides of the report,
 * the advertiser's and the extender's, without threads or clocks between. */
#include <criterion/criterion.h>
#include <string.h>

#include "advertiser/achieved/carrier.h"
#include "advertiser/achieved/given_facts.h"
#include "advertiser/settings.h"
#include "extender/achieved/achieved_marks.h"
#include "extender/achieved/achieved_watch.h"
#include "extender/state/draft.h"
#include "lib/base/json.h"
#include "tests/lib/randnode.h"
#include "tests/lib/sim/simfleet.h"
#include "tests/lib/sim/simhost.h"

enum { PODS = 500, GPUS = 8, NODES = (PODS + GPUS - 1) / GPUS };

/* Pod i is on node i / GPUS and was promised GPU i % GPUS there. */
struct world {
    struct snapshot *snapshot;
    unsigned has[PODS]; /* which of its node's GPUs it was given */
    unsigned lost[PODS], again, back;
};

static const struct topo *topo_of(const struct world *w, size_t node)
{
    return snapshot_node(w->snapshot, node)->topo;
}

static const struct device *device_at(const struct topo *topo,
                                      enum device_kind kind, size_t i)
{
    size_t first;
    (void)topo_count(topo, kind, &first);
    return topo_device(topo, first + i);
}

static char (*id_of(const struct topo *topo, enum device_kind kind,
                    size_t i))[TOPO_ID_MAX + 1]
{
    char(*one)[TOPO_ID_MAX + 1] = xcalloc(1, sizeof *one);
    (void)snprintf(one[0], sizeof one[0], "%s", device_at(topo, kind, i)->id);
    return one;
}

static struct allocation *promise(const struct topo *topo, size_t i)
{
    struct demand d = {.namespace = "ns", .role = ROLE_HOST};
    (void)snprintf(d.name, sizeof d.name, "p-%zu", i);
    (void)snprintf(d.uid, sizeof d.uid, "uid-%zu", i);
    struct allocation *a = allocation_create(&d, topo_node(topo));
    a->cards = id_of(topo, DEVICE_CARD, i % GPUS);
    a->gpus = id_of(topo, DEVICE_GPU, i % GPUS);
    a->n_cards = a->n_gpus = 1;
    a->numa = device_at(topo, DEVICE_GPU, i % GPUS)->numa;
    a->relation = RELATION_PIX;
    return a;
}

static void world_init(struct world *w)
{
    *w = (struct world){0};
    cleanup_with(snapshot) struct snapshot *bare = simfleet_create(NODES, GPUS);
    struct draft *d = draft_create(bare);
    for (size_t i = 0; i < PODS; i++) {
        w->has[i] = (unsigned)(i % GPUS);
        draft_allocate(d, promise(snapshot_node(bare, i / GPUS)->topo, i));
    }
    w->snapshot = draft_commit(d);
}

/* As a plugin does that goes by another order than Biga. */
static void shuffle(struct world *w, size_t node)
{
    size_t first = node * GPUS;
    for (size_t k = GPUS - 1; k > 0; k--) {
        size_t to = roll((uint32_t)k + 1);
        if (first + k >= PODS)
            continue;
        unsigned swap = w->has[first + k];
        w->has[first + k] = w->has[first + to];
        w->has[first + to] = swap;
    }
}

/* --- the node's side ------------------------------------------------------ */

/* What its kubelet lists now of the pods of a node. */
static struct facts look(const struct world *w, size_t node)
{
    struct given_pod pods[GPUS] = {0};
    struct given_device devices[GPUS];
    char names[GPUS][16], ids[GPUS][PCI_ADDR_TEXT_MAX];
    const struct topo *topo = topo_of(w, node);
    const struct device_uuids none = {0};
    const struct host_seen seen = {.places = {topo, "/nonexistent", &none}};
    struct given_pods all = {.pods = pods};
    struct facts f = {0};
    for (size_t i = node * GPUS; all.n < GPUS && i < PODS; i++, all.n++) {
        struct given_pod *p = &pods[all.n];
        (void)snprintf(names[all.n], sizeof names[all.n], "p-%zu", i);
        pci_addr_format(&device_at(topo, DEVICE_GPU, w->has[i])->pci,
                        ids[all.n]);
        devices[all.n] = (struct given_device){"nvidia.com/gpu", ids[all.n]};
        *p = (struct given_pod){.namespace = "ns",
                                .name = names[all.n],
                                .devices = &devices[all.n],
                                .n_devices = 1};
    }
    given_facts_add(&all, &seen, &f);
    facts_sort(&f);
    return f;
}

/* --- the extender's ------------------------------------------------------- */

static void on_lost(void *ctx, const struct allocation *a, const char *text,
                    bool again)
{
    struct world *w = ctx;
    size_t i = PODS;
    char has[PCI_ADDR_TEXT_MAX];
    cr_assert_eq(sscanf(a->demand.name, "p-%zu", &i), 1);
    cr_assert_lt(i, PODS);
    pci_addr_format(
        &device_at(topo_of(w, i / GPUS), DEVICE_GPU, w->has[i])->pci, has);
    cr_expect(strstr(text, a->gpus[0]) && strstr(text, has), "%s: %s",
              a->demand.name, text);
    w->lost[i] += !again;
    w->again += again;
}

static void on_back(void *ctx, const struct allocation *a)
{
    struct world *w = ctx;
    (void)a;
    w->back++;
}

static struct achieved_report *parse(const char *json, size_t size)
{
    struct achieved_report *r = NULL;
    struct error err = {0};
    cr_assert_eq(achieved_report_parse(json, size, &r, &err), 0, "%s",
                 err.text);
    return r;
}

static struct achieved_report *report_of(const struct world *w, size_t node)
{
    cleanup_str struct str out = STR_INIT(FACTS_REPORT_MAX);
    struct facts f = look(w, node);
    cr_expect_eq(facts_write(&f, topo_of(w, node), &out), 0u);
    facts_fini(&f);
    return parse(str_text(&out), out.size);
}

static void look_at_all(struct world *w, struct achieved_marks *m)
{
    struct achieved_report *reports[NODES];
    for (size_t i = 0; i < NODES; i++)
        reports[i] = report_of(w, i);
    achieved_marks_look(m, w->snapshot, reports, NODES, false);
    for (size_t i = 0; i < NODES; i++)
        achieved_report_unref(reports[i]);
}

Test(achieved_told, of_500_pods_each_mismatch_and_no_other)
{
    static struct world w;
    world_init(&w);
    const struct achieved_told told = {on_lost, on_back, &w};
    struct achieved_marks *m = achieved_marks_create(&told);
    uint64_t seed = chance_init();
    size_t n_lost = 0;
    look_at_all(&w, m); /* all have what they were promised */
    for (size_t i = 0; i < PODS; i++)
        cr_expect_eq(w.lost[i], 0u, "pod %zu", i);
    for (size_t node = 0; node < NODES; node += 2)
        shuffle(&w, node);
    look_at_all(&w, m);
    look_at_all(&w, m);
    for (size_t i = 0; i < PODS; i++) {
        bool wrong = w.has[i] != i % GPUS;
        cr_expect_eq(w.lost[i], (unsigned)wrong, "seed %llu, pod %zu: %u",
                     (unsigned long long)seed, i, w.lost[i]);
        n_lost += wrong;
    }
    cr_expect(n_lost > 0 && n_lost < PODS, "%zu are lost", n_lost);
    cr_expect_eq(w.again + w.back, 0u);
    for (size_t i = 0; i < PODS; i++)
        w.has[i] = (unsigned)(i % GPUS);
    look_at_all(&w, m);
    cr_expect_eq(w.back, n_lost, "%u of %zu are right again", w.back, n_lost);
    achieved_marks_destroy(m);
    snapshot_unref(w.snapshot);
}

/* --- in time -------------------------------------------------------------- */

enum { FOUND_MS = 5000, PATIENCE_MS = 60000 };

/* How often an advertiser looks that is told nothing else. */
static int64_t default_look_ms(void)
{
    struct settings s = {0};
    struct error err = {0};
    cr_assert_eq(conf_read_text(&advertiser_program, "none", "", 0, &s, &err),
                 0, "%s", err.text);
    int64_t ms = s.achieved_ms;
    conf_fini(&advertiser_program, &s);
    return ms;
}

/* The advertiser of the first node, in virtual time. */
struct teller {
    struct carrier *carrier;
    struct publish_request rq;
    struct facts before, told;
    struct achieved_report *arrived; /* NULL: none */
};

static void teller_init(struct teller *n)
{
    const struct carrier_config config = {.node = "node000",
                                          .namespace = "biga-nodes",
                                          .again_ms = PATIENCE_MS,
                                          .backoff_min_ms = 100,
                                          .backoff_max_ms = 30000};
    *n = (struct teller){.carrier = carrier_create(&config, 1),
                         .rq.body = STR_INIT(CARRIER_BODY_MAX)};
}

static void teller_fini(struct teller *n)
{
    carrier_destroy(n->carrier);
    str_fini(&n->rq.body);
    facts_fini(&n->before);
    facts_fini(&n->told);
    achieved_report_unref(n->arrived);
}

/* The API server has it, and the extender's watch brings it. */
static void arrive(struct teller *n)
{
    cleanup_with(json) cJSON *object = NULL;
    struct error err = {0};
    cr_assert_eq(
        json_parse(str_text(&n->rq.body), n->rq.body.size, &object, &err), 0,
        "%s", err.text);
    const cJSON *data = cJSON_GetObjectItem(object, "data");
    const char *report =
        cJSON_GetStringValue(cJSON_GetObjectItem(data, CARRIER_KEY));
    cr_assert_not_null(report);
    achieved_report_unref(n->arrived);
    n->arrived = parse(report, strlen(report));
}

static void teller_look(struct teller *n, const struct world *w, int64_t now_ms)
{
    static const char node[] = "{\"metadata\":{\"name\":\"node000\",\"uid\":"
                               "\"u\",\"resourceVersion\":\"1\"}}";
    cleanup_str struct str out = STR_INIT(FACTS_REPORT_MAX);
    struct facts now = look(w, 0);
    struct facts told = facts_settled(&now, &n->before, &n->told);
    facts_fini(&n->before);
    facts_fini(&n->told);
    n->before = now;
    n->told = told;
    (void)facts_write(&told, topo_of(w, 0), &out); /* it has room */
    carrier_tell(n->carrier, str_text(&out), out.size, now_ms);
    while (carrier_next(n->carrier, now_ms, &n->rq)) {
        bool get = strcmp(n->rq.method, "GET") == 0;
        if (!get)
            arrive(n);
        carrier_answer(
            n->carrier, now_ms,
            &(struct publish_answer){.status = 200,
                                     .body = get ? node : "{}",
                                     .body_size = get ? sizeof node - 1 : 2});
    }
}

/* Two pods have each other's GPU from `given_ms` on: how long until it is said,
 * when the extender has just looked at something else. */
static int64_t found_after_ms(int64_t look_ms, int64_t given_ms)
{
    static struct world w;
    struct teller n;
    world_init(&w);
    teller_init(&n);
    const struct achieved_told told = {on_lost, on_back, &w};
    struct achieved_marks *m = achieved_marks_create(&told);
    int64_t now = 0;
    for (; now < PATIENCE_MS && !w.lost[0]; now += look_ms) {
        w.has[0] = now >= given_ms;
        w.has[1] = now < given_ms;
        teller_look(&n, &w, now);
        if (n.arrived)
            achieved_marks_look(m, w.snapshot, &n.arrived, 1, false);
    }
    cr_expect(w.lost[0] == 1 && w.lost[1] == 1, "%u and %u", w.lost[0],
              w.lost[1]);
    achieved_marks_destroy(m);
    teller_fini(&n);
    snapshot_unref(w.snapshot);
    return now - look_ms + ACHIEVED_PAUSE_MS - given_ms;
}

/* The rest is for the calls of a busy API server. */
Test(achieved_told, within_5_s)
{
    int64_t look_ms = default_look_ms(), begin_ms = 5 * look_ms;
    cr_assert_gt(look_ms, 0);
    for (int64_t after = 0; after <= look_ms; after += look_ms / 8) {
        int64_t ms = found_after_ms(look_ms, begin_ms + after);
        cr_expect(ms >= look_ms && ms <= FOUND_MS - 1000,
                  "given %lld ms after a look: found after %lld ms",
                  (long long)after, (long long)ms);
    }
}
