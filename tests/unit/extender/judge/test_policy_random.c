/* Random pods, jobs and services under a policy: nobody ever has more than
 * its quota, and no share is ever short that was declared first. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "extender/judge/schedule.h"
#include "extender/keep/writer.h"
#include "extender/state/usage.h"
#include "lib/base/mem.h"
#include "tests/lib/sanitized.h"
#include "tests/lib/sim/simhost.h"
#include "tests/lib/sim/simstate.h"

enum {
    NODES = 3,
    CARDS = 3,
    STEPS = ROUNDS_OF(6000),
    A_CARDS = 5,
    B_CORES = 30
};

static const char text[] =
    "{\"quotas\":[{\"namespace\":\"a\",\"cards\":5},"
    "{\"namespace\":\"b\",\"cardCores\":30}],"
    "\"services\":[{\"namespace\":\"s\",\"name\":\"x\",\"cores\":3,"
    "\"memoryMiB\":500,\"priority\":1},"
    "{\"namespace\":\"s\",\"name\":\"y\",\"nodes\":\"n[01]\",\"cores\":2}]}";

static struct demand random_pod(uint64_t *seed)
{
    static const enum pod_role roles[] = {ROLE_HOST, ROLE_XPU, ROLE_SERVICE};
    static const char *const namespaces[] = {"a", "b", "c"};
    enum pod_role role = roles[sim_random(seed) % 3];
    unsigned job = sim_random(seed) % 5, pair = sim_random(seed) % 2;
    char name[24], job_name[8];
    (void)snprintf(job_name, sizeof job_name, "j%u", job);
    (void)snprintf(name, sizeof name, "%s-%u-%u", pod_role_name(role), job,
                   pair);
    struct demand d = sim_pod(name, role, job_name, (int)pair);
    const char *namespace = namespaces[sim_random(seed) % 3];
    if (role == ROLE_SERVICE) {
        namespace = "s";
        (void)snprintf(d.job, sizeof d.job, "%s", job % 2 ? "x" : "y");
    } else if (job == 0) {
        d.size = 2;
    }
    (void)snprintf(d.namespace, sizeof d.namespace, "%s", namespace);
    if (role == ROLE_HOST && job > 2)
        d.cards = d.pair_cards = 2;
    d.exclusive = sim_random(seed) % 8 == 0;
    return sim_random(seed) % 4
               ? sim_need(d, 1 + sim_random(seed) % 6, sim_random(seed) % 3000)
               : d;
}

/* Is each share there, and would a pod of the service get it? */
static void check_share(void *ctx, const struct usage_share *share)
{
    const struct snapshot *s = ctx;
    cr_assert_eq(share->state, SHARE_HELD, "%s on card %u",
                 share->service->name, share->card);
    struct schedule sc;
    struct choice choice;
    struct demand d = sim_pod("probe", ROLE_SERVICE, share->service->name, 0);
    (void)snprintf(d.namespace, sizeof d.namespace, "s");
    if (share->kept_cores == 0)
        return;
    d = sim_need(d, share->kept_cores, share->kept_memory_mib);
    schedule_init(&sc, s, &d);
    for (int32_t i = 0; i < NODES; i++)
        if (schedule_choose(&sc, i, &choice) == REASON_NONE)
            return;
    cr_assert_fail("%s gets its share nowhere", share->service->name);
}

static void check(struct writer *w, unsigned step)
{
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    cleanup_str struct str why = STR_INIT(4096);
    struct namespace_use use;
    cr_assert(sim_check(s, &why), "step %u: %s", step, str_text(&why));
    snapshot_quota_use(s, "a", &use);
    cr_assert_leq(use.cards, A_CARDS, "step %u", step);
    snapshot_quota_use(s, "b", &use);
    cr_assert_leq(use.cores, B_CORES, "step %u", step);
    for (size_t i = 0; i < s->n_nodes; i++) {
        struct usage usage;
        node_usage(snapshot_node(s, i), s->policy, &usage);
        usage_each_share(&usage, check_share, s);
    }
}

Test(policy, holds_under_random_pods)
{
    uint64_t seed = 3;
    struct writer *w = sim_writer(NULL);
    cleanup_with(policy) struct policy *policy = NULL;
    struct error err = {0};
    unsigned bound[4] = {0}, over = 0;
    cr_assert_eq(policy_read(text, strlen(text), &policy, &err), 0, "%s",
                 err.text);
    struct writer_op set = {.kind = WRITER_SET_POLICY, .policy = policy};
    cr_assert_eq(writer_run(w, &set), 0);
    for (unsigned i = 0; i < NODES; i++) {
        char node[8];
        (void)snprintf(node, sizeof node, "n%u", i);
        cr_assert_eq(sim_publish(w, node, CARDS, "boot", 1), 0);
    }
    for (unsigned step = 0; step < STEPS; step++) {
        struct demand d = random_pod(&seed);
        char node[8];
        (void)snprintf(node, sizeof node, "n%u", sim_random(&seed) % NODES);
        if (sim_random(&seed) % 3) {
            bool created = false;
            (void)sim_bind(w, &d, node, &created, &err);
            bound[d.role] += created;
            over += !created && strstr(err.text, "quota of namespace") != NULL;
        } else {
            struct writer_op op = {.kind = WRITER_RELEASE,
                                   .namespace = d.namespace,
                                   .pod = d.name};
            (void)writer_run(w, &op);
        }
        check(w, step);
    }
    cr_log_info("%u host, %u xPU, %u service pods; %u over quota",
                bound[ROLE_HOST], bound[ROLE_XPU], bound[ROLE_SERVICE], over);
    cr_expect_gt(bound[ROLE_HOST], ROUNDS_OF(100));
    cr_expect_gt(bound[ROLE_XPU], ROUNDS_OF(100));
    cr_expect_gt(bound[ROLE_SERVICE], ROUNDS_OF(100));
    cr_expect_gt(over, ROUNDS_OF(100));
    writer_stop(w);
}
