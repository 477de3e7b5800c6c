#include "extender/state/quota.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "extender/judge/schedule.h"
#include "extender/keep/writer.h"
#include "extender/state/draft.h"
#include "lib/base/mem.h"
#include "tests/lib/sim/simfleet.h"
#include "tests/lib/sim/simhost.h"
#include "tests/lib/sim/simstate.h"
#include "tests/lib/tmpdir.h"

static struct policy *policy_of(const char *text)
{
    struct policy *p = NULL;
    struct error err = {0};
    cr_assert_eq(policy_read(text, strlen(text), &p, &err), 0, "%s", err.text);
    return p;
}

/* Four hosts of four cards under a policy. */
static struct draft *fleet(const char *policy_text)
{
    struct draft *d = simfleet_draft(simhost_topo, 4, 4);
    cleanup_with(policy) struct policy *p = policy_of(policy_text);
    draft_set_policy(d, p);
    return d;
}

static void expect_nowhere(const struct schedule *s)
{
    const int32_t all[] = {0, 1, 2, 3};
    uint32_t best[4];
    size_t fitting = 9;
    cr_expect_eq(schedule_best(s, all, 4, 2, best, &fitting), 0);
    cr_expect_eq(schedule_best(s, all, 4, 0, best, &fitting), 0);
    cr_expect_eq(fitting, 0);
    for (int32_t i = 0; i < 4; i++)
        cr_expect_eq(schedule_cost(s, i), COST_NO_FIT);
}

/* Bind when it may be bound; the words of the refusal, else "". */
static const char *bind(struct draft *d, const struct demand *pod,
                        int32_t index)
{
    static char words[512];
    struct schedule s;
    struct choice choice;
    cleanup_with(snapshot) struct snapshot *now = draft_peek(d);
    schedule_init(&s, now, pod);
    if (s.follows >= 0)
        index = s.follows;
    enum reason r = schedule_choose(&s, index, &choice);
    words[0] = '\0';
    if (r == REASON_NONE) {
        draft_allocate(d, schedule_allocation(&s, index, &choice));
    } else {
        cleanup_str struct str text = STR_INIT(sizeof words - 1);
        if (r == REASON_QUOTA || r == REASON_NOT_ALLOWED)
            expect_nowhere(&s);
        schedule_brief(&s, r, &text);
        (void)snprintf(words, sizeof words, "%s", str_text(&text));
    }
    return words;
}

static struct namespace_use use_of(struct draft *d, const char *namespace)
{
    struct namespace_use use;
    cleanup_with(snapshot) struct snapshot *now = draft_peek(d);
    snapshot_quota_use(now, namespace, &use);
    return use;
}

#define QUOTA(what)                                 \
    "{\"quotas\":[{\"namespace\":\"ns\"," what "}," \
    "{\"namespace\":\"zz\",\"cards\":0}]}"

static struct demand host_of(const char *name, const char *job, int pair,
                             uint8_t cards)
{
    struct demand d = sim_pod(name, ROLE_HOST, job, pair);
    d.cards = d.pair_cards = cards;
    return d;
}

Test(quota, counts_the_cards_of_a_pair_once)
{
    cleanup_with(draft) struct draft *d = fleet(QUOTA("\"cards\":3"));
    struct demand h = host_of("h", "j", 0, 2);
    struct demand x0 = sim_need(sim_pod("x0", ROLE_XPU, "j", 0), 4, 100);
    struct demand x1 = sim_need(sim_pod("x1", ROLE_XPU, "j", 0), 2, 100);
    cr_expect_str_eq(bind(d, &h, 0), "");
    cr_expect_eq(use_of(d, "ns").cards, 2);
    cr_expect_str_eq(bind(d, &x0, 0), "");
    cr_expect_str_eq(bind(d, &x1, 0), "");
    struct namespace_use use = use_of(d, "ns");
    cr_expect_eq(use.cards, 2);
    cr_expect_eq(use.cores, 6);
    cr_expect_eq(use.memory_mib, 200);
    cr_expect_eq(use_of(d, "default").cards, 0);

    struct demand more = host_of("m", "k", 0, 2);
    cr_expect_str_eq(bind(d, &more, 1),
                     "quota of namespace ns: 2 of 3 cards used, 2 more asked");
    more.cards = more.pair_cards = 1;
    cr_expect_str_eq(bind(d, &more, 1), "");
    cr_expect(draft_release(d, "ns", "h"));
    cr_expect_eq(use_of(d, "ns").cards, 3, "its xPU pods are still there");
    cr_expect(draft_release(d, "ns", "x0"));
    cr_expect_eq(use_of(d, "ns").cards, 2);
}

static struct demand asking(const char *name, enum pod_role role,
                            const char *sets)
{
    struct demand d = sim_pod(name, role, role == ROLE_SERVICE ? name : "j", 0);
    memcpy(d.devices.text, sets, strlen(sets));
    return d;
}

#define NONE_OF_CARDS "no card with the devices "

Test(quota, devices_are_for_namespaces_that_may_have_them)
{
    cleanup_with(draft) struct draft *d =
        fleet("{\"devices\":[{\"namespace\":\"ns\",\"sets\":[\"rdma\"]}]}");
    struct demand may = asking("a", ROLE_SERVICE, "rdma");
    struct demand not = asking("b", ROLE_SERVICE, "rdma snap");
    cr_expect_str_eq(bind(d, &may, 0), NONE_OF_CARDS "\"rdma\"",
                     "it may, and no card has them");
    cr_expect_str_eq(bind(d, &not, 0),
                     "namespace ns may have the devices \"rdma\" of cards, and "
                     "\"rdma snap\" is asked for: its operator would have to "
                     "name them under \"devices\" in the policy file");
    struct demand host = host_of("h", "j", 0, 1);
    struct demand xpu = asking("x", ROLE_XPU, "snap");
    cr_expect_str_eq(bind(d, &host, 0), "");
    cr_expect(strstr(bind(d, &xpu, 0), "the cards of its pair cannot take it"),
              "its pair's card has no such devices");
}

Test(quota, without_a_policy_nobody_has_devices)
{
    cleanup_with(draft) struct draft *d = simfleet_draft(simhost_topo, 4, 4);
    struct demand pod = asking("a", ROLE_SERVICE, "rdma");
    cr_expect(strstr(bind(d, &pod, 0), "namespace ns may have no devices of "
                                       "cards, and \"rdma\" is asked for"));
}

Test(quota, counts_the_larger_of_host_and_xpu_pods)
{
    cleanup_with(draft) struct draft *d = fleet(QUOTA("\"cardCores\":10"));
    struct demand h = sim_need(host_of("h", "j", 0, 2), 4, 0);
    struct demand x = sim_need(sim_pod("x", ROLE_XPU, "j", 0), 4, 0);
    struct demand y = sim_need(sim_pod("y", ROLE_XPU, "k", 0), 3, 0);
    cr_expect_str_eq(bind(d, &h, 0), "");
    cr_expect_eq(use_of(d, "ns").cores, 8);
    cr_expect_str_eq(bind(d, &x, 0), "", "from what its host pod has");
    cr_expect_eq(use_of(d, "ns").cores, 8);
    cr_expect_str_eq(
        bind(d, &y, 1),
        "quota of namespace ns: 8 of 10 card cores used, 3 more asked");
    y.has_card_need = false;
    cr_expect_str_eq(bind(d, &y, 1),
                     "quota of namespace ns limits the cores of cards: the pod "
                     "has to request biga.dev/card-cores");
    /* a further xPU pod of the pair that goes beyond it */
    struct demand z = sim_need(sim_pod("z", ROLE_XPU, "j", 0), 7, 0);
    cr_expect_str_eq(
        bind(d, &z, 0),
        "quota of namespace ns: 8 of 10 card cores used, 3 more asked");
    z.card_cores = 6;
    cr_expect_str_eq(bind(d, &z, 0), "");
    cr_expect_eq(use_of(d, "ns").cores, 10);
}

Test(quota, limits_memory_and_lets_others_be)
{
    cleanup_with(draft) struct draft *d =
        fleet(QUOTA("\"cardMemoryMiB\":1000"));
    struct demand x = sim_need(sim_pod("x", ROLE_XPU, "j", 0), 1, 1001);
    cr_expect_str_eq(bind(d, &x, 0), "quota of namespace ns: 0 of 1000 MiB of "
                                     "card memory used, 1001 more asked");
    (void)snprintf(x.namespace, sizeof x.namespace, "other");
    cr_expect_str_eq(bind(d, &x, 0), "");
    cr_expect_eq(use_of(d, "other").memory_mib, 1001);
    (void)snprintf(x.namespace, sizeof x.namespace, "zz");
    cr_expect_str_eq(bind(d, &x, 0),
                     "quota of namespace zz: 0 of 0 cards used, 1 more asked");
}

Test(quota, counts_a_whole_job_at_once)
{
    cleanup_with(draft) struct draft *d = fleet(QUOTA("\"cards\":8"));
    cleanup_with(snapshot) struct snapshot *s = draft_peek(d);
    struct demand h = host_of("h", "j", 2, 2);
    struct quota_verdict v;
    h.size = 4;
    quota_judge(s, &h, NULL, &v);
    cr_expect_eq(v.kind, QUOTA_OK);
    h.size = 5;
    quota_judge(s, &h, NULL, &v);
    cr_expect_eq(v.kind, QUOTA_CARDS);
    cr_expect_eq(v.asked, 10);

    /* pairs that have a place are counted already, and not again */
    struct demand other = host_of("o", "j", 0, 2);
    other.size = 1;
    cr_expect_str_eq(bind(d, &other, 1), "");
    snapshot_unref(s);
    s = draft_peek(d);
    quota_judge(s, &h, NULL, &v);
    cr_expect_eq(v.kind, QUOTA_CARDS);
    cr_expect_eq(v.used, 2);
    cr_expect_eq(v.asked, 8);
    h.size = 4;
    quota_judge(s, &h, NULL, &v);
    cr_expect_eq(v.kind, QUOTA_OK);
}

Test(quota, keeps_what_is_there_when_it_is_lowered)
{
    cleanup_with(draft) struct draft *d = fleet(QUOTA("\"cards\":3"));
    struct demand h = host_of("h", "j", 0, 2);
    struct demand x = sim_need(sim_pod("x", ROLE_XPU, "j", 0), 4, 100);
    cr_expect_str_eq(bind(d, &h, 0), "");
    cleanup_with(policy) struct policy *less = policy_of(QUOTA("\"cards\":1"));
    draft_set_policy(d, less);
    cr_expect_str_eq(bind(d, &x, 0), "", "no card more");
    struct demand again = host_of("h", "j", 0, 1);
    (void)snprintf(again.uid, sizeof again.uid, "another");
    struct demand more = host_of("m", "k", 0, 1);
    cr_expect_str_neq(bind(d, &more, 1), "");
    draft_set_policy(d, NULL);
    cr_expect_str_eq(bind(d, &more, 1), "");
}

/* --- against a count from nothing ----------------------------------------- */

static struct namespace_use recount(const struct snapshot *s,
                                    const char *namespace)
{
    struct namespace_use sum = {0};
    size_t n;
    cleanup_free const struct allocation **all =
        alloc_index_list(s->allocations, &n);
    for (size_t i = 0; i < n; i++) {
        const struct allocation *pair[64];
        struct namespace_use use;
        if (strcmp(all[i]->demand.namespace, namespace) != 0)
            continue;
        size_t k = alloc_index_find_pair(s->allocations, all[i]->pair_key, pair,
                                         64);
        cr_assert_leq(k, 64);
        if (pair[0] != all[i])
            continue; /* each pair by its first member */
        namespace_use_count_pair(pair, k, &use);
        sum.cards += use.cards;
        sum.cores += use.cores;
        sum.memory_mib += use.memory_mib;
    }
    return sum;
}

static struct demand random_pod(uint64_t *seed)
{
    static const enum pod_role roles[] = {ROLE_HOST, ROLE_XPU, ROLE_XPU,
                                          ROLE_SERVICE};
    char name[16];
    unsigned role = sim_random(seed) % 4;
    unsigned pair = sim_random(seed) % 6;
    (void)snprintf(name, sizeof name, "p%u-%u-%u", role, pair,
                   sim_random(seed) % 2);
    struct demand d = sim_pod(name, roles[role], "j", (int)pair);
    (void)snprintf(d.namespace, sizeof d.namespace, "ns%u",
                   sim_random(seed) % 3);
    (void)snprintf(d.uid, sizeof d.uid, "u%u", sim_random(seed) % 1000);
    if (d.role == ROLE_HOST)
        d.cards = d.pair_cards = (uint8_t)(1 + sim_random(seed) % 2);
    return sim_random(seed) % 4
               ? sim_need(d, 1 + sim_random(seed) % 4, sim_random(seed) % 500)
               : d;
}

Test(quota, follows_every_change)
{
    uint64_t seed = 11;
    struct draft *d = fleet("{\"quotas\":[{\"namespace\":\"ns0\",\"cards\":4},"
                            "{\"namespace\":\"ns1\",\"cardCores\":9}]}");
    unsigned bound = 0;
    for (unsigned i = 0; i < 4000; i++) {
        struct demand pod = random_pod(&seed);
        if (sim_random(&seed) % 3)
            bound += !*bind(d, &pod, (int32_t)(sim_random(&seed) % 4));
        else
            (void)draft_release(d, pod.namespace, pod.name);
        cleanup_with(snapshot) struct snapshot *now = draft_peek(d);
        for (unsigned k = 0; k < 3; k++) {
            char namespace[8];
            struct namespace_use use;
            (void)snprintf(namespace, sizeof namespace, "ns%u", k);
            struct namespace_use right = recount(now, namespace);
            snapshot_quota_use(now, namespace, &use);
            cr_assert_eq(memcmp(&use, &right, sizeof use), 0, "step %u", i);
            cr_assert(k != 0 || use.cards <= 4);
            cr_assert(k != 1 || use.cores <= 9);
        }
        if (sim_random(&seed) % 16 == 0) { /* from draft to draft */
            cleanup_with(snapshot) struct snapshot *s = draft_commit(d);
            d = draft_create(s);
        }
    }
    cr_expect_gt(bound, 300);
    draft_destroy(d);
}

/* --- through the writer ------------------------------------------------- */

static void set_policy(struct writer *w, const char *text)
{
    cleanup_with(policy) struct policy *p = policy_of(text);
    struct writer_op op = {.kind = WRITER_SET_POLICY, .policy = p};
    cr_assert_eq(writer_run(w, &op), 0);
}

static struct namespace_use writer_use(struct writer *w)
{
    struct namespace_use use;
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    snapshot_quota_use(s, "ns", &use);
    return use;
}

enum { RACERS = 8 };

static void note_done(struct writer_op *op)
{
    atomic_fetch_add((atomic_int *)op->ctx, 1);
}

/* All that are posted while the writer is busy end up in one batch. */
static void hold_writer(void *ctx)
{
    while (atomic_load((atomic_int *)ctx) == 0)
        (void)usleep(1000);
}

Test(quota, holds_for_binds_that_race)
{
    struct writer *w = sim_writer(NULL);
    atomic_int go = 0, done = 0;
    cr_assert_eq(sim_publish(w, "n1", 8, "boot", 1), 0);
    set_policy(w, QUOTA("\"cards\":3"));
    struct writer_op hold = {
        .kind = WRITER_CALL, .call = hold_writer, .ctx = &go};
    struct writer_op ops[RACERS];
    struct demand pods[RACERS];
    writer_post(w, &hold);
    for (int i = 0; i < RACERS; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "p%d", i);
        pods[i] = host_of(name, "j", i, 1);
        ops[i] = (struct writer_op){.kind = WRITER_BIND,
                                    .node = "n1",
                                    .demand = &pods[i],
                                    .out = STR_INIT(1 << 20),
                                    .done = note_done,
                                    .ctx = &done};
        writer_post(w, &ops[i]);
    }
    atomic_store(&go, 1);
    while (atomic_load(&done) < RACERS)
        (void)usleep(1000);
    for (int i = 0; i < RACERS; i++) {
        cr_expect_eq(ops[i].result, i < 3 ? 0 : -EBUSY, "%d", i);
        cr_expect(i < 3 || strstr(ops[i].error.text,
                                  "quota of namespace ns: 3 of 3 cards used"));
        str_fini(&ops[i].out);
    }
    cr_expect_eq(writer_use(w).cards, 3);
    writer_stop(w);
}

Test(quota, is_the_same_after_a_restart)
{
    char *dir = tmpdir_create();
    struct writer *w = sim_writer(dir);
    struct demand h = sim_need(host_of("h", "j", 0, 2), 4, 100);
    struct demand x = sim_need(sim_pod("x", ROLE_XPU, "j", 0), 6, 50);
    struct demand v = sim_need(sim_pod("v", ROLE_SERVICE, "s", 0), 1, 5);
    cr_assert_eq(sim_publish(w, "n1", 4, "boot", 1), 0);
    cr_assert_eq(sim_bind(w, &h, "n1", NULL, NULL), 0);
    cr_assert_eq(sim_bind(w, &x, "n1", NULL, NULL), 0);
    cr_assert_eq(sim_bind(w, &v, "n1", NULL, NULL), 0);
    struct namespace_use before = writer_use(w);
    cr_expect_eq(before.cards, 3);
    cr_expect_eq(before.cores, 6 + 4 + 1);
    cr_expect_eq(before.memory_mib, 100 + 100 + 5);
    writer_stop(w);
    w = sim_writer(dir);
    struct namespace_use after = writer_use(w);
    cr_expect_eq(memcmp(&before, &after, sizeof before), 0);
    writer_stop(w);
    tmpdir_remove(dir);
}
