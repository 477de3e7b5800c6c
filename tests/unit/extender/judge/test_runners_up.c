#include "extender/judge/runners_up.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "extender/judge/schedule.h"
#include "extender/state/draft.h"
#include "lib/base/mem.h"
#include "tests/lib/sim/simstate.h"

static struct writer *w;

static void start(void)
{
    w = sim_writer(NULL);
}

static void stop(void)
{
    writer_stop(w);
}

TestSuite(runners_up, .init = start, .fini = stop);

static void publish(unsigned i, unsigned n_cards)
{
    char node[8];
    (void)snprintf(node, sizeof node, "n%u", i);
    cr_assert_eq(sim_publish(w, node, n_cards, "boot", 1), 0);
}

static int bind(const char *name, enum pod_role role, const char *job,
                const char *node, bool exclusive)
{
    struct error err;
    struct demand d = sim_pod(name, role, job, 0);
    d.exclusive = exclusive;
    return sim_bind(w, &d, node, NULL, &err);
}

/* What is told of a pod; the text too. */
static struct runners_up find(const char *pod, struct str *text)
{
    struct runners_up r;
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    const struct allocation *a = alloc_index_find(s->allocations, "ns", pod);
    cr_assert(a, "%s", pod);
    runners_up_find(s, a, &r);
    str_reset(text);
    runners_up_tell(&r, text);
    runners_up_write(&r, text);
    return r;
}

Test(runners_up, tells_what_made_the_difference)
{
    cleanup_str struct str text = STR_INIT(4096);
    publish(0, 2);
    cr_assert_eq(bind("a", ROLE_XPU, "", "n0", true), 0);
    struct runners_up r = find("a", &text);
    cr_expect_str_eq(r.decided_by, "only");
    cr_expect_eq(r.n, 0);
    cr_expect(strstr(str_text(&text), "it fits no other node"));
    publish(1, 4);
    r = find("a", &text);
    cr_expect_eq(r.n, 1);
    cr_expect_eq(r.fitting, 1);
    cr_expect(strstr(str_text(&text),
                     "the next best is node n1: idle cards left behind in "
                     "broken groups 4, here 1\n"),
              "%s", str_text(&text));
    cr_expect(strstr(str_text(&text), "\"decidedBy\":\"damage\""));
    publish(2, 1);
    r = find("a", &text);
    cr_expect_str_eq(r.decided_by, "since");
    cr_expect(strstr(str_text(&text), "it would go to node n2"), "%s",
              str_text(&text));
    cr_expect_eq(r.n, 2);
}

Test(runners_up, the_pair_is_asked_about_as_a_whole)
{
    cleanup_str struct str text = STR_INIT(4096);
    publish(0, 2);
    publish(1, 2);
    cr_assert_eq(bind("h", ROLE_HOST, "j", "n0", false), 0);
    cr_assert_eq(bind("x", ROLE_XPU, "j", "n0", false), 0);
    const char *const pods[] = {"h", "x"};
    for (size_t i = 0; i < 2; i++) {
        struct runners_up r = find(pods[i], &text);
        cr_expect_eq(r.n, 1, "it does not follow the other");
        cr_expect_str_eq(r.decided_by, "name");
        cr_expect(strstr(str_text(&text), "equal; names decide"));
    }
}

Test(runners_up, of_a_job_the_others_stay)
{
    cleanup_str struct str text = STR_INIT(4096);
    struct error err;
    for (unsigned i = 0; i < 3; i++)
        publish(i, 2);
    for (int i = 0; i < 2; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "m%d", i);
        struct demand d = sim_member(name, ROLE_HOST, "ring", i, 2);
        cr_assert_eq(sim_bind(w, &d, "n0", NULL, &err), 0, "%s", err.text);
    }
    struct runners_up r = find("m1", &text);
    cr_expect_eq(r.n, 2);
    /* nodes that no fabric places are leaves by themselves */
    cr_expect_str_eq(r.decided_by, "tier", "%s", str_text(&text));
    cr_expect(strstr(r.list[0].differs, "the job within no domain, here leaf"),
              "%s", r.list[0].differs);
}

/* Against the decision itself, with the pair's places given back. */
static void check(const char *pod)
{
    cleanup_str struct str text = STR_INIT(4096);
    struct runners_up r = find(pod, &text);
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    const struct allocation *a = alloc_index_find(s->allocations, "ns", pod);
    struct draft *d = draft_create(s);
    (void)draft_release(d, "ns", pod);
    cleanup_with(snapshot) struct snapshot *now = draft_peek(d);
    draft_destroy(d);
    struct demand pair;
    struct schedule schedule;
    int32_t all[8];
    uint32_t best[8];
    size_t fitting;
    demand_pair(&a->demand, 0, &pair);
    schedule_init(&schedule, now, &pair);
    for (int32_t i = 0; i < 8; i++)
        all[i] = i;
    size_t n = schedule_best(&schedule, all, now->n_nodes, 8, best, &fitting);
    cr_assert_geq(n, 1);
    bool first = strcmp(snapshot_node(now, best[0])->name, a->node) == 0;
    cr_assert_eq(strcmp(r.decided_by, "only") == 0, fitting == 1);
    cr_assert_eq(strcmp(r.decided_by, "since") == 0, !first);
    cr_assert_eq(r.fitting, fitting - 1);
    size_t k = 0;
    for (size_t i = 0; i < n && k < r.n; i++) {
        const char *name = snapshot_node(now, best[i])->name;
        if (strcmp(name, a->node) != 0)
            cr_assert_str_eq(r.list[k++].node, name);
    }
    cr_assert_eq(k, r.n);
}

Test(runners_up, holds_for_any_fleet)
{
    uint64_t random = 7;
    for (int round = 0; round < 60; round++) {
        char name[16];
        unsigned n_nodes = 1 + sim_random(&random) % 6;
        stop();
        start();
        for (unsigned i = 0; i < n_nodes; i++)
            publish(i, 1 + sim_random(&random) % 6);
        for (int i = 0; i < 10; i++) {
            char node[8];
            (void)snprintf(name, sizeof name, "p%d", i);
            (void)snprintf(node, sizeof node, "n%u",
                           (unsigned)(sim_random(&random) % n_nodes));
            if (bind(name, ROLE_XPU, "", node, true) == 0)
                check(name);
        }
    }
}
