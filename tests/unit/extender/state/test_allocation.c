#include "extender/state/allocation.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "tests/lib/sim/simstate.h"

static struct allocation *make(const char *name, const char *node,
                               const char *job, uint64_t number)
{
    struct demand d = sim_pod(name, ROLE_HOST, job, 0);
    struct allocation *a = allocation_create(&d, node);
    a->number = number;
    return a;
}

static struct allocation *make_full(void)
{
    struct demand d = sim_need(sim_pod("p\"1", ROLE_XPU, "job", 7), 4, 8192);
    d.size = 16;
    d.cards = 2;
    d.pair_cards = 3;
    d.gpus = 1;
    d.align = RELATION_PXB;
    d.exclusive = true;
    d.by_claim = true;
    d.priority = -5;
    (void)snprintf(d.arch, sizeof d.arch, "arm64");
    (void)snprintf(d.devices.text, sizeof d.devices.text, "rdma snap");
    d.pair_gpus = 2;
    d.nics = 1;
    d.pair_nics = 4;
    d.cpu_milli = 1500;
    d.memory_mib = 3000;
    d.prefer_align = RELATION_NODE;
    d.within = 1;
    d.prefer_within = 0;
    d.n_shapes = 2;
    d.shapes[0] = (struct pair_shape){.last = 6, .cards = 1, .align = 5};
    d.shapes[1] = (struct pair_shape){.first = 7,
                                      .last = 15,
                                      .cards = 3,
                                      .gpus = 2,
                                      .nics = 4,
                                      .has_card_need = true,
                                      .card_cores = 4,
                                      .card_memory_mib = 8192,
                                      .cpu_milli = 1500,
                                      .memory_mib = 3000};
    struct allocation *a = allocation_create(&d, "node-1");
    a->n_cards = 2;
    a->cards = xcalloc(2, sizeof *a->cards);
    (void)snprintf(a->cards[0], sizeof a->cards[0], "card-0000-17-00");
    (void)snprintf(a->cards[1], sizeof a->cards[1], "operator-named");
    a->card_pci = xcalloc(2, sizeof *a->card_pci);
    (void)snprintf(a->card_pci[0], sizeof a->card_pci[0], "0000:17:00.1");
    a->n_gpus = 1;
    a->gpus = xcalloc(1, sizeof *a->gpus);
    (void)snprintf(a->gpus[0], sizeof a->gpus[0], "gpu-10000-1b-00-0");
    a->gpu_pci = xcalloc(1, sizeof *a->gpu_pci);
    (void)snprintf(a->gpu_pci[0], sizeof a->gpu_pci[0], "10000:1b:00.0");
    a->n_nics = 1;
    a->nics = xcalloc(1, sizeof *a->nics);
    (void)snprintf(a->nics[0], sizeof a->nics[0], "nic-0000-1c-00-0");
    a->nic_pci = xcalloc(1, sizeof *a->nic_pci);
    (void)snprintf(a->nic_pci[0], sizeof a->nic_pci[0], "0000:1c:00.0");
    a->relation = RELATION_PIX;
    a->nic_relation = RELATION_PXB;
    a->numa = 3;
    a->epoch.generation = 9007199254740992;
    (void)snprintf(a->epoch.boot_id, sizeof a->epoch.boot_id, "boot");
    a->number = 42;
    return a;
}

static char *encoded(const struct allocation *a)
{
    struct str s = STR_INIT(1 << 20);
    allocation_encode(a, &s);
    return str_steal(&s);
}

Test(allocation, encodes_and_decodes_all_of_it)
{
    cleanup_with(allocation) struct allocation *a = make_full(), *b = NULL;
    cleanup_free char *text = encoded(a);
    struct error err = {0};
    cr_assert_eq(allocation_decode(text, strlen(text), &b, &err), 0, "%s",
                 err.text);
    cleanup_free char *again = encoded(b);
    cr_expect_str_eq(text, again);
    cr_expect(demand_same_class(&a->demand, &b->demand));
    cr_expect_eq(memcmp(&a->demand, &b->demand, sizeof b->demand), 0);
    cr_expect_str_eq(b->pair_key, a->pair_key);
    cr_expect_str_eq(b->cards[1], "operator-named");
    cr_expect_eq(b->n_nics, 1);
    cr_expect_str_eq(b->nics[0], "nic-0000-1c-00-0");
    cr_expect_str_eq(b->nic_pci[0], "0000:1c:00.0");
    cr_expect_eq(b->nic_relation, RELATION_PXB);
    cr_expect_eq(b->epoch.generation, a->epoch.generation);
    cr_expect_eq(b->demand.priority, -5);
    cr_expect(strstr(text, "{\"id\":\"card-0000-17-00\","
                           "\"pci\":\"0000:17:00.1\"}"));
    cr_expect(strstr(text, "\"pci\":\"10000:1b:00.0\""));
    cr_expect(strstr(text, "{\"id\":\"operator-named\"}"));
    allocation_unref(a);
    allocation_unref(b);
    a = b = NULL;
}

Test(allocation, refuses_whatever_is_wrong_by_its_path)
{
    static const struct {
        const char *from, *to, *says;
    } cases[] = {
        {"\"role\":\"xpu\"", "\"role\":\"card\"", "pod.role"},
        {"\"pair\":7", "\"pair\":-1", "pod.pair"},
        {"\"numa\":3", "\"numa\":-2", "numa"},
        {"\"relation\":\"PIX\"", "\"relation\":\"pix\"", "relation"},
        {"\"generation\":9007199254740992", "\"generation\":\"1\"",
         "epoch.generation"},
        {"\"cores\":4", "\"cores\":4294967296", "need.cores"},
        {"\"cores\":4,", "", "need.cores"},
        {"\"claims\":true", "\"claims\":1", "need.claims"},
        {"\"nicRelation\":\"PXB\",", "", "nicRelation"},
        {"\"nics\":1", "\"nics\":17", "need.nics"},
        {"\"pairNics\":4", "\"pairNics\":-1", "need.pairNics"},
        {"\"within\":\"spine\"", "\"within\":\"rack\"", "need.within"},
        {"\"cpuMilli\":1500", "\"cpuMilli\":-1", "need.cpuMilli"},
        {"\"hostMemoryMiB\":3000", "\"hostMemoryMiB\":\"1\"",
         "need.hostMemoryMiB"},
        {"\"preferAlign\":\"NODE\"", "\"preferAlign\":1", "need.preferAlign"},
        {"\"first\":7", "\"first\":6", "need.shapes[1].first"},
        {"\"shapes\":[", "\"shapes\":[{},{},{},{},{},{},{},", "need.shapes"},
        {"\"number\":42", "\"number\":42,\"extra\":1", "extra"},
        {"\"number\":42", "\"number\":42,\"number\":42", "duplicate key"},
        {"\"pci\":\"0000:17:00.1\"", "\"pci\":\"0000:17:00\"", "cards[0].pci"},
        {"{\"id\":\"operator-named\"}",
         "{\"id\":\"operator-named\",\"pci\":\"17:00.0\"}", "cards[1].pci"},
        {"\"node\":\"node-1\"", "\"node\":\"\"", "node"},
    };
    cleanup_with(allocation) struct allocation *a = make_full();
    cleanup_free char *text = encoded(a);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *at = strstr(text, cases[i].from);
        cr_assert(at, "%s", cases[i].from);
        cleanup_free char *bad = xasprintf("%.*s%s%s", (int)(at - text), text,
                                           cases[i].to,
                                           at + strlen(cases[i].from));
        struct allocation *b = NULL;
        struct error err = {0};
        cr_expect_eq(allocation_decode(bad, strlen(bad), &b, &err), -EINVAL,
                     "%s", cases[i].to);
        cr_expect_null(b);
        cr_expect(strstr(err.text, cases[i].says), "%s: %s", cases[i].to,
                  err.text);
    }
}

/* Stores of before jobs were planned. */
Test(allocation, decodes_what_earlier_versions_stored)
{
    static const char text[] =
        "{\"pod\":{\"namespace\":\"ns\",\"name\":\"p\",\"uid\":\"u\","
        "\"role\":\"host\",\"job\":\"j\",\"pair\":999999,\"size\":1000000,"
        "\"priority\":0},\"node\":\"n\",\"cards\":[],\"gpus\":[],\"numa\":-1,"
        "\"relation\":\"PIX\",\"epoch\":{\"generation\":1},\"number\":1,"
        "\"need\":{\"cards\":1,\"pairCards\":1,\"gpus\":3,\"align\":\"SYS\","
        "\"exclusive\":false}}";
    cleanup_with(allocation) struct allocation *a = NULL;
    struct error err = {0};
    cr_assert_eq(allocation_decode(text, sizeof text - 1, &a, &err), 0, "%s",
                 err.text);
    cr_expect_eq(a->demand.pair_gpus, 3);
    cr_expect_eq(a->demand.nics + a->demand.pair_nics + a->n_nics, 0);
    cr_expect_eq(a->demand.cpu_milli, 0);
    cr_expect_eq(a->demand.memory_mib, 0);
    cr_expect_eq(a->demand.prefer_align, RELATION_PIX);
    cr_expect_eq(a->demand.within, DEMAND_ANYWHERE);
    cr_expect_eq(a->demand.prefer_within, DEMAND_ANYWHERE);
    cr_expect_eq(a->demand.n_shapes, 0);
    cr_expect_eq(a->demand.size, DEMAND_SIZE_MAX);
    cr_expect_eq(a->demand.pair, 999999);
}

Test(allocation, refuses_every_truncation)
{
    cleanup_with(allocation) struct allocation *a = make_full();
    cleanup_free char *text = encoded(a);
    for (size_t n = 0; n < strlen(text); n++) {
        struct allocation *b = NULL;
        cr_assert_lt(allocation_decode(text, n, &b, NULL), 0, "%zu", n);
    }
}

/* --- the index --------------------------------------------------------- */

static void add(struct alloc_index **x, struct allocation *a)
{
    alloc_index_put(x, a);
    allocation_unref(a);
}

Test(alloc_index, finds_by_pod_uid_pair_and_node)
{
    struct alloc_index *x = alloc_index_create();
    add(&x, make("b", "n1", "job", 2));
    add(&x, make("a", "n1", "job", 3));
    add(&x, make("c", "n2", "", 1));
    cr_expect_eq(alloc_index_size(x), 3);
    cr_expect_str_eq(alloc_index_find(x, "ns", "c")->node, "n2");
    cr_expect_null(alloc_index_find(x, "other", "c"));
    cr_expect_str_eq(alloc_index_find_uid(x, "uid-b")->demand.name, "b");
    cr_expect_null(alloc_index_find_uid(x, ""));

    const struct allocation *pair[4];
    const char *key = alloc_index_find(x, "ns", "a")->pair_key;
    cr_assert_eq(alloc_index_find_pair(x, key, pair, 4), 2);
    cr_expect_str_eq(pair[0]->demand.name, "b", "the first that was bound");
    cr_expect_eq(alloc_index_find_pair(x, key, pair, 1), 2);

    size_t n = 0;
    cleanup_free const struct allocation **on = alloc_index_on_node(x, "n1",
                                                                    &n);
    cr_assert_eq(n, 2);
    cr_expect_str_eq(on[0]->demand.name, "a");
    cr_expect_str_eq(on[1]->demand.name, "b");
    alloc_index_unref(x);
}

Test(alloc_index, leaves_earlier_versions_as_they_were)
{
    struct alloc_index *x = alloc_index_create();
    add(&x, make("a", "n1", "", 1));
    struct alloc_index *before = alloc_index_ref(x);
    add(&x, make("a", "n2", "", 2));
    cr_expect_eq(alloc_index_size(x), 1, "an equal pod is replaced");
    cr_expect_str_eq(alloc_index_find(x, "ns", "a")->node, "n2");
    cr_expect_str_eq(alloc_index_find(before, "ns", "a")->node, "n1");
    alloc_index_drop(&x, alloc_index_find(x, "ns", "a"));
    cr_expect_eq(alloc_index_size(x), 0);
    cr_expect_null(alloc_index_find_uid(x, "uid-a"));
    cr_expect(alloc_index_find_uid(before, "uid-a"));
    alloc_index_unref(before);
    alloc_index_unref(x);
}

/* Names whose numbers are alike go to the same parts of the tries. */
Test(alloc_index, tells_numbers_at_the_end_of_names_apart)
{
    static const char *const heads[] = {"",   "0",       "00", "w",  "w0",
                                        "w1", "w123456", "wx", "256"};
    enum { EACH = 600, ALL = EACH * ARRAY_LEN(heads) };
    struct alloc_index *x = alloc_index_create();
    char name[DEMAND_NAME_MAX];
    for (size_t i = 0; i < ALL; i++) {
        if (i % 2)
            (void)snprintf(name, sizeof name, "%s%06zu", heads[i / EACH], i);
        else
            (void)snprintf(name, sizeof name, "%s-%zu", heads[i / EACH], i);
        add(&x, make(name, name, "", i));
    }
    cr_expect_eq(alloc_index_size(x), ALL);
    size_t n;
    cleanup_free const struct allocation **all = alloc_index_list(x, &n);
    cr_assert_eq(n, ALL);
    for (size_t i = 0; i < n; i++) {
        size_t on = 0;
        const char *pod = all[i]->demand.name;
        cr_expect_eq(alloc_index_find(x, "ns", pod), all[i]);
        cr_expect_eq(alloc_index_find_uid(x, all[i]->demand.uid), all[i]);
        free(alloc_index_on_node(x, pod, &on));
        cr_expect_eq(on, 1, "%s", pod);
    }
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(name, sizeof name, "%s", all[i]->demand.name);
        alloc_index_drop(&x, all[i]);
        cr_expect_null(alloc_index_find(x, "ns", name));
    }
    cr_expect_eq(alloc_index_size(x), 0);
    alloc_index_unref(x);
}

/* Those of the job "job" that are bound are found, a few or all. */
static void expect_bound(const struct alloc_index *x,
                         const struct allocation *const *list, size_t n)
{
    const struct alloc_wanted wanted = {
        .namespace = "ns", .job = "job", .bound = true};
    cleanup_free const struct allocation **found = xcalloc(n + 1,
                                                           sizeof *found);
    size_t bound = 0;
    for (size_t i = 0; i < n; i++)
        bound += !list[i]->held;
    cr_assert_gt(bound, 1);
    cr_expect(alloc_index_has_bound(x, "ns", "job"));
    cr_expect_eq(alloc_index_find_some(x, &wanted, found, bound - 1),
                 bound - 1);
    cr_expect_eq(alloc_index_find_some(x, &wanted, found, n), bound);
    for (size_t i = 0; i < bound; i++) {
        cr_expect_not(found[i]->held);
        cr_expect_str_eq(found[i]->demand.job, "job");
    }
}

/* Pairs anywhere in the range, of which some leave again. */
Test(alloc_index, finds_all_members_of_large_jobs)
{
    enum { MEMBERS = 3000 };
    struct alloc_index *x = alloc_index_create();
    uint64_t random = 1;
    for (uint64_t i = 0; i < MEMBERS; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "%u", sim_random(&random));
        struct allocation *a = make(name, "n", i % 3 ? "job" : "other", i);
        a->demand.pair =
            i % 2 ? (int32_t)i
                  : (int32_t)(sim_random(&random) % (DEMAND_PAIR_MAX + 1));
        add(&x, a);
    }
    size_t n, n_other;
    cleanup_free const struct allocation **list =
        alloc_index_find_job(x, "ns", "job", &n);
    free(alloc_index_find_job(x, "ns", "other", &n_other));
    cr_expect_eq(n + n_other, alloc_index_size(x));
    for (size_t i = 1; i < n; i++)
        cr_assert_leq(list[i - 1]->demand.pair, list[i]->demand.pair);
    expect_bound(x, list, n);
    size_t left = n;
    for (size_t i = 0; i < n; i += 2, left--)
        alloc_index_drop(&x, list[i]);
    cleanup_free const struct allocation **others =
        alloc_index_find_job(x, "ns", "job", &n);
    cr_expect_eq(n, left);
    expect_bound(x, others, n);
    for (size_t i = 0; i < n; i++)
        if (!others[i]->held)
            alloc_index_drop(&x, others[i]);
    cr_expect_not(alloc_index_has_bound(x, "ns", "job"));
    cr_expect(alloc_index_has_bound(x, "ns", "other"));
    alloc_index_unref(x);
}

/* Against an array, with versions kept on the way. */
Test(alloc_index, agrees_with_an_array_through_20000_changes)
{
    enum { PODS = 700, NODES = 9, CHANGES = 20000 };
    static int where[PODS]; /* node + 1, 0: not there */
    struct alloc_index *x = alloc_index_create();
    uint64_t random = 1;
    size_t size = 0;
    for (int i = 0; i < CHANGES; i++) {
        unsigned pod = sim_random(&random) % PODS;
        unsigned node = sim_random(&random) % NODES;
        char name[16], host[16];
        (void)snprintf(name, sizeof name, "p%u", pod);
        (void)snprintf(host, sizeof host, "n%u", node);
        if (sim_random(&random) % 2) {
            add(&x, make(name, host, "", (uint64_t)i));
            size += where[pod] == 0;
            where[pod] = (int)node + 1;
        } else if (where[pod]) {
            alloc_index_drop(&x, alloc_index_find(x, "ns", name));
            where[pod] = 0;
            size--;
        }
        const struct allocation *a = alloc_index_find(x, "ns", name);
        cr_assert_eq(a != NULL, where[pod] != 0);
        cr_assert_eq(alloc_index_size(x), size);
    }
    size_t n = 0, on = 0;
    cleanup_free const struct allocation **all = alloc_index_list(x, &n);
    cr_expect_eq(n, size);
    for (size_t i = 1; i < n; i++)
        cr_assert_lt(allocation_compare_pod(all[i - 1], all[i]), 0);
    for (unsigned i = 0; i < NODES; i++) {
        char host[16];
        (void)snprintf(host, sizeof host, "n%u", i);
        free(alloc_index_on_node(x, host, &n));
        on += n;
    }
    cr_expect_eq(on, size);
    alloc_index_unref(x);
}

/* Takes the differences back, one after the other. */
static void take_back(void *ctx, const struct allocation *before,
                      const struct allocation *after)
{
    struct alloc_index **x = ctx;
    cr_assert_neq(before, after);
    if (before)
        alloc_index_put(x, (struct allocation *)before);
    else
        alloc_index_drop(x, after);
}

static void count_changes(void *ctx, const struct allocation *before,
                          const struct allocation *after)
{
    (void)before;
    (void)after;
    ++*(size_t *)ctx;
}

static void put_new(struct alloc_index **x, unsigned pod, uint64_t number)
{
    char name[16];
    (void)snprintf(name, sizeof name, "p%u", pod);
    struct allocation *a = make(name, "n", "", number);
    alloc_index_put(x, a);
    allocation_unref(a);
}

static void drop_pod(struct alloc_index **x, unsigned pod)
{
    char name[16];
    (void)snprintf(name, sizeof name, "p%u", pod);
    const struct allocation *a = alloc_index_find(*x, "ns", name);
    if (a)
        alloc_index_drop(x, a);
}

Test(alloc_index, tells_what_is_different_between_two_versions)
{
    uint64_t random = 7;
    struct alloc_index *before = alloc_index_create();
    for (unsigned round = 0; round < 300; round++) {
        struct alloc_index *after = alloc_index_ref(before);
        unsigned n = sim_random(&random) % 40;
        for (unsigned i = 0; i < n; i++) {
            unsigned pod = sim_random(&random) % 400;
            if (sim_random(&random) % 5 < 3)
                put_new(&after, pod, round * 100 + i);
            else
                drop_pod(&after, pod);
        }
        struct alloc_index *back = alloc_index_ref(after);
        size_t n_left = 0, n_changes = 0;
        alloc_index_diff(before, after, take_back, &back);
        alloc_index_diff(before, back, count_changes, &n_left);
        alloc_index_diff(before, after, count_changes, &n_changes);
        cr_assert_eq(n_left, 0);
        cr_assert_leq(n_changes, n);
        cr_assert_eq(alloc_index_size(back), alloc_index_size(before));
        alloc_index_unref(back);
        alloc_index_unref(before);
        before = after;
    }
    alloc_index_unref(before);
}

Test(allocation, a_held_place_says_so)
{
    struct demand d = {.role = ROLE_HOST, .size = 4, .cards = 1};
    struct error err = {0};
    struct allocation *back = NULL;
    cleanup_str struct str json = STR_INIT(8192);
    (void)snprintf(d.namespace, sizeof d.namespace, "ns");
    (void)snprintf(d.name, sizeof d.name, "solver/3");
    (void)snprintf(d.job, sizeof d.job, "solver");
    d.pair = 3;
    struct allocation *a = allocation_create(&d, "node1");
    allocation_encode(a, &json);
    cr_assert_null(strstr(str_text(&json), "held"));
    str_reset(&json);
    a->held = true;
    allocation_encode(a, &json);
    cr_assert_eq(allocation_decode(json.data, json.size, &back, &err), 0, "%s",
                 err.text);
    cr_assert(back->held);
    cr_assert_str_eq(back->pair_key, "ns/solver/3");
    allocation_unref(back);
    allocation_unref(a);
}

/* --- large jobs ----------------------------------------------------------- */

enum { LARGE_JOBS = 60, LARGE_ROUNDS = 4000 };

static struct allocation *make_member(unsigned job, unsigned pair, bool service)
{
    char name[32], text[32];
    (void)snprintf(name, sizeof name, "pod-%u-%u", job, pair);
    (void)snprintf(text, sizeof text, "job-%u", job);
    struct demand d = sim_pod(name, service ? ROLE_SERVICE : ROLE_HOST, text,
                              (int)pair);
    struct allocation *a = allocation_create(&d, "node-1");
    a->n_cards = (uint8_t)(1 + pair % 3);
    a->n_gpus = (uint8_t)(job % 2);
    a->n_nics = (uint8_t)(pair % 2);
    return a;
}

/* All members of jobs with so many devices, each once; none when no job has
 * as many. */
static void expect_large(const struct alloc_index *x, uint32_t devices,
                         const uint32_t has[LARGE_JOBS],
                         const size_t members[LARGE_JOBS])
{
    size_t n, seen[LARGE_JOBS] = {0};
    cleanup_free const struct allocation **list =
        alloc_index_large_jobs(x, devices, &n);
    for (size_t i = 0; i < n; i++)
        seen[strtoul(list[i]->demand.job + 4, NULL, 10)]++;
    for (size_t job = 0; job < LARGE_JOBS; job++)
        if (has[job] >= devices)
            cr_assert_eq(seen[job], members[job], "job %zu of %u", job,
                         devices);
        else
            cr_assert(seen[job] == 0 || seen[job] <= members[job]);
}

Test(allocation, index_finds_jobs_with_so_many_devices)
{
    struct alloc_index *x = alloc_index_create(), *before = NULL;
    uint32_t has[LARGE_JOBS] = {0}, most = 0;
    size_t members[LARGE_JOBS] = {0};
    unsigned state = 1;
    for (unsigned i = 0; i < LARGE_ROUNDS; i++) {
        state = state * 1103515245u + 12345u;
        unsigned job = (state >> 16) % LARGE_JOBS;
        unsigned pair = (state >> 8) % (1 + job * 2);
        struct allocation *a = make_member(job, pair, pair % 11 == 10);
        const struct allocation *old = alloc_index_find(x, a->demand.namespace,
                                                        a->demand.name);
        bool counts = pair % 11 != 10;
        uint32_t devices = counts ? (uint32_t)a->n_cards + a->n_gpus + a->n_nics
                                  : 0;
        if (i % 100 == 0) { /* some parts are shared from here on */
            alloc_index_unref(before);
            before = alloc_index_ref(x);
        }
        if (old && state >> 30 & 1) {
            alloc_index_drop(&x, old);
            has[job] -= devices;
            members[job] -= counts;
        } else {
            has[job] += old ? 0 : devices;
            members[job] += counts && !old;
            alloc_index_put(&x, a);
        }
        allocation_unref(a);
    }
    for (unsigned job = 0; job < LARGE_JOBS; job++)
        most = has[job] > most ? has[job] : most;
    cr_assert_gt(most, 100);
    for (uint32_t devices = 1; devices <= most + 1; devices++)
        expect_large(x, devices, has, members);
    size_t n;
    free(alloc_index_large_jobs(x, most * LARGE_JOBS, &n));
    cr_expect_eq(n, 0);
    alloc_index_unref(before);
    alloc_index_unref(x);
}
