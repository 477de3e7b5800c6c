/* Rooms of hosts from the JSON of Nodes and pods, as the API server sends it,
 * against a model; through the feed to a writer. */
#include "extender/cluster/host_capacity.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "extender/state/draft.h"
#include "lib/base/str.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "tests/lib/await.h"
#include "tests/lib/sim/simstate.h"

enum { HOSTS = 12, PODS = 300, STEPS = 4000, CHECKS = 100 };

enum kind { GONE, OTHER, ROLE_POD, HOST_POD, KINDS };

struct pod {
    enum kind kind;
    unsigned host;
    int64_t cpu, memory; /* milli, KiB */
    bool counts, seen;
};

struct model {
    struct pod pods[PODS];
    bool known[HOSTS], seen[HOSTS];
    int64_t cpu[HOSTS], memory[HOSTS], most[HOSTS];
};

static struct writer *writer;
static struct feed *feed;
static struct host_capacity *rooms;
static struct demand_config config;
static uint64_t seed;

static void start(void)
{
    log_set_level(LOG_ERROR);
    seed = 5;
    demand_config_default(&config);
    writer = sim_writer(NULL);
    feed = feed_create(writer);
    rooms = host_capacity_create(feed, &config);
}

static void stop(void)
{
    host_capacity_destroy(rooms);
    feed_destroy(feed);
    writer_stop(writer);
}

TestSuite(cluster_rooms, .init = start, .fini = stop, .timeout = 180);

static void sleep_ms(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    (void)nanosleep(&t, NULL);
}

static void settle(void)
{
    host_capacity_listed_pods(rooms);
    while (feed_n_waiting(feed))
        sleep_ms(1);
}

static struct host_room room_of(const char *host)
{
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(writer);
    struct draft *d = draft_create(s);
    struct host_room room = draft_room(d, host);
    draft_destroy(d);
    return room;
}

static uint64_t snapshot_number(void)
{
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(writer);
    return s->number;
}

/* --- JSON --------------------------------------------------------------- */

static void node_json(const struct model *m, unsigned host, struct str *out)
{
    str_reset(out);
    str_addf(out,
             "{\"metadata\":{\"labels\":{\"a\":\"b\"},\"name\":\"h%u\"},"
             "\"spec\":{},\"status\":{\"capacity\":{\"cpu\":\"999\"},"
             "\"allocatable\":{\"cpu\":\"%" PRId64 "m\",\"memory\":\"%" PRId64
             "Ki\",\"pods\":\"%" PRId64 "\",\"hugepages-1Gi\":\"0\"},"
             "\"conditions\":[]}}",
             host, m->cpu[host], m->memory[host], m->most[host]);
}

static void uid_of(unsigned i, char uid[40])
{
    (void)snprintf(uid, 40, "%08x-0000-4000-8000-%012x", i, i * 77777);
}

/* The annotation of a host pod that was bound by Biga, as a JSON text. */
static void add_annotation(const struct pod *p, unsigned i, struct str *out)
{
    char uid[40], name[16], host[16];
    cleanup_str struct str text = STR_INIT(10000);
    (void)snprintf(name, sizeof name, "p%u", i);
    (void)snprintf(host, sizeof host, "h%u", p->host);
    uid_of(i, uid);
    struct demand d = sim_pod(name, ROLE_HOST, "", 0);
    (void)snprintf(d.uid, sizeof d.uid, "%s", uid);
    struct allocation *a = allocation_create(&d, host);
    allocation_encode(a, &text);
    allocation_unref(a);
    str_add(out, ",\"annotations\":{\"biga.dev/allocation\":");
    str_add_json(out, str_text(&text));
    str_add(out, "}");
}

static void pod_json(const struct pod *p, unsigned i, const char *phase,
                     struct str *out)
{
    char uid[40];
    uid_of(i, uid);
    str_reset(out);
    str_addf(out,
             "{\"metadata\":{\"name\":\"p%u\",\"namespace\":\"ns\","
             "\"uid\":\"%s\",\"resourceVersion\":\"7\"",
             i, uid);
    if (p->kind != OTHER)
        str_addf(out, ",\"labels\":{\"biga.dev/role\":\"%s\"}",
                 p->kind == ROLE_POD ? "xpu" : "host");
    if (p->kind == HOST_POD)
        add_annotation(p, i, out);
    str_addf(out,
             "},\"spec\":{\"nodeName\":\"h%u\",\"containers\":[{\"name\":"
             "\"c\",\"resources\":{\"requests\":{\"cpu\":\"%" PRId64
             "m\",\"memory\":\"%" PRId64 "Ki\"}}}]},\"status\":{\"phase\":"
             "\"%s\"}}",
             p->host, p->cpu, p->memory, phase);
}

/* --- events ------------------------------------------------------------- */

static void send_pod(const struct pod *p, unsigned i, const char *phase)
{
    static struct str json = STR_INIT(100000);
    struct kube_pod pod;
    struct error err;
    pod_json(p, i, phase, &json);
    if (p->kind == OTHER) {
        host_capacity_pods.put(rooms, json.data, json.size);
        return;
    }
    cr_assert_eq(kube_pod_read(json.data, json.size, &config, &pod, &err), 0,
                 "%s", err.text);
    host_capacity_put_pod(rooms, &pod);
}

static void put_pod(struct model *m, unsigned i)
{
    struct pod *p = &m->pods[i];
    char uid[40];
    uid_of(i, uid);
    if (p->kind == GONE)
        p->kind = OTHER + sim_random(&seed) % (KINDS - OTHER);
    p->host = sim_random(&seed) % HOSTS;
    p->cpu = sim_random(&seed) % 4000;
    p->memory = sim_random(&seed) % 4000000;
    bool finished = sim_random(&seed) % 5 == 0;
    p->counts = !finished && p->kind != HOST_POD;
    p->seen = true;
    send_pod(p, i, finished ? "Succeeded" : "Running");
}

static void drop_pod(struct model *m, unsigned i)
{
    static struct str json = STR_INIT(100000);
    struct pod *p = &m->pods[i];
    char uid[40];
    uid_of(i, uid);
    if (p->kind == OTHER) {
        pod_json(p, i, "Running", &json);
        host_capacity_pods.gone(rooms, json.data, json.size);
    } else {
        host_capacity_gone_pod(rooms, uid);
    }
    *p = (struct pod){.kind = GONE};
}

static void change_node(struct model *m, unsigned i, bool known)
{
    static struct str json = STR_INIT(100000);
    m->cpu[i] = sim_random(&seed) % 200000;
    m->memory[i] = sim_random(&seed) % 300000000;
    m->most[i] = sim_random(&seed) % 250;
    m->known[i] = m->seen[i] = known;
    node_json(m, i, &json);
    if (known)
        host_capacity_nodes.put(rooms, json.data, json.size);
    else
        host_capacity_nodes.gone(rooms, json.data, json.size);
}

static void relist_pods(struct model *m)
{
    host_capacity_pods.list(rooms);
    for (unsigned i = 0; i < PODS; i++)
        m->pods[i].seen = m->pods[i].kind != OTHER;
    for (unsigned i = 0; i < PODS; i++)
        if (m->pods[i].kind == OTHER && sim_random(&seed) % 4)
            put_pod(m, i);
    host_capacity_pods.listed(rooms);
    for (unsigned i = 0; i < PODS; i++)
        if (!m->pods[i].seen)
            m->pods[i] = (struct pod){.kind = GONE};
}

static void relist_nodes(struct model *m)
{
    host_capacity_nodes.list(rooms);
    memset(m->seen, 0, sizeof m->seen);
    for (unsigned i = 0; i < HOSTS; i++)
        if (sim_random(&seed) % 4)
            change_node(m, i, true);
    host_capacity_nodes.listed(rooms);
    for (unsigned i = 0; i < HOSTS; i++)
        m->known[i] = m->known[i] && m->seen[i];
}

/* --- what comes out ----------------------------------------------------- */

static void compare(const struct model *m)
{
    settle();
    for (unsigned h = 0; h < HOSTS; h++) {
        char name[16];
        (void)snprintf(name, sizeof name, "h%u", h);
        struct host_room is = room_of(name);
        int64_t cpu = m->cpu[h], memory = m->memory[h], n = m->most[h];
        for (unsigned i = 0; i < PODS; i++) {
            const struct pod *p = &m->pods[i];
            if (p->kind == GONE || !p->counts || p->host != h)
                continue;
            cpu -= p->cpu;
            memory -= p->memory;
            n--;
        }
        if (!m->known[h]) {
            cr_assert_eq(is.pods, INT64_MAX, "%s", name);
            continue;
        }
        cr_assert_eq(is.cpu_milli, cpu, "%s", name);
        cr_assert_eq(is.memory_mib, memory / 1024 - (memory % 1024 < 0), "%s",
                     name);
        cr_assert_eq(is.pods, n, "%s", name);
    }
}

Test(cluster_rooms, are_what_the_cluster_says)
{
    static struct model m;
    for (unsigned step = 0; step < STEPS; step++) {
        unsigned i = sim_random(&seed) % PODS, what = sim_random(&seed) % 100;
        if (what < 60)
            put_pod(&m, i);
        else if (what < 90 && m.pods[i].kind != GONE)
            drop_pod(&m, i);
        else if (what < 96)
            change_node(&m, i % HOSTS, sim_random(&seed) % 3 > 0);
        else if (what < 97)
            relist_pods(&m);
        else if (what < 98)
            relist_nodes(&m);
        if (step % (STEPS / CHECKS) == 0)
            compare(&m);
    }
}

Test(cluster_rooms, come_by_themselves_and_together)
{
    static struct model m;
    change_node(&m, 0, true);
    AWAIT(room_of("h0").cpu_milli != INT64_MAX);
    cr_assert_neq(room_of("h0").cpu_milli, INT64_MAX, "nobody was told");
    settle();
    uint64_t before = snapshot_number();
    int64_t begin_ms = clock_ms();
    for (unsigned round = 0; round < 200; round++) {
        for (unsigned i = 0; i < HOSTS; i++)
            change_node(&m, i, true);
        sleep_ms(1);
    }
    int64_t took_ms = clock_ms() - begin_ms;
    uint64_t n = snapshot_number() - before;
    cr_assert_leq(n, (uint64_t)(took_ms / ROOMS_MS + 2),
                  "%" PRIu64 " snapshots in %" PRId64 " ms", n, took_ms);
    compare(&m);
}

Test(cluster_rooms, take_what_is_wrong_for_nothing)
{
    static const char wrong[] = "{\"metadata\":{\"name\":\"h\"},\"status\":{"
                                "\"allocatable\":{\"cpu\":\"x\",\"memory\":"
                                "[1],\"pods\":{}}}}";
    static const char *const texts[] = {
        "{}",
        "[]",
        "{\"metadata\":{\"name\":7}}",
        "{\"metadata\":null,\"status\":[]}",
        wrong,
        "{\"metadata\":{\"name\":\"h\"},\"status\":{\"allocatable\":{",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        host_capacity_nodes.put(rooms, texts[i], strlen(texts[i]));
        host_capacity_nodes.gone(rooms, texts[i], strlen(texts[i]));
        host_capacity_pods.put(rooms, texts[i], strlen(texts[i]));
        host_capacity_pods.gone(rooms, texts[i], strlen(texts[i]));
    }
    static const char some[] = "{\"metadata\":{\"name\":\"h\"},\"status\":{"
                               "\"allocatable\":{\"cpu\":4,\"pods\":\"x\"}}}";
    host_capacity_nodes.put(rooms, some, strlen(some));
    settle();
    cr_assert_eq(room_of("h").cpu_milli, 4000);
    cr_assert_eq(room_of("h").memory_mib, INT64_MAX);
    cr_assert_eq(room_of("h").pods, INT64_MAX);
}

static void on_pod(void *ctx, const struct kube_pod *pod)
{
    (void)snprintf(ctx, ERROR_TEXT_MAX, "%s: %s", pod->demand.name,
                   pod->odd.text);
}

/* The role may be what is misspelt. */
Test(cluster_rooms, pass_pods_without_a_role_on)
{
    static const char json[] =
        "{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"u\","
        "\"labels\":{\"biga.dev/rol\":\"host\"}},\"spec\":{\"nodeName\":"
        "\"h0\",\"containers\":[]}}";
    char told[ERROR_TEXT_MAX] = "";
    host_capacity_listen(
        rooms, &(struct host_capacity_listener){.put = on_pod, .ctx = told});
    host_capacity_pods.put(rooms, json, sizeof json - 1);
    cr_expect_str_eq(told, "p: metadata.labels[\"biga.dev/rol\"]: is no key of "
                           "Biga; did you mean biga.dev/role?");
    settle();
}
