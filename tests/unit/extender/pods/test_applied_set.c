#include "extender/pods/applied_set.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "extender/pods/applied_private.h"
#include "extender/pods/applied_view.h"
#include "lib/base/mem.h"
#include "tests/lib/sim/simstate.h"

enum { PODS = 120, CHANGES = 3000 };

/* One of some jobs, or of none, in any state. */
static struct applied_pod *make(unsigned number, uint64_t *random)
{
    static const char *const jobs[] = {"", "a", "ab", "b"};
    struct applied_pod *p = xcalloc(1, sizeof *p);
    atomic_init(&p->refs, 1);
    (void)snprintf(p->uid, sizeof p->uid, "%08x-%u", sim_random(random) % 4096,
                   number);
    p->namespace = xasprintf("ns%u", number % 3);
    p->name = xasprintf("p%u", number);
    p->demand.role = sim_random(random) % 6 ? ROLE_HOST : ROLE_SERVICE;
    (void)snprintf(p->demand.job, sizeof p->demand.job, "%s",
                   jobs[sim_random(random) % ARRAY_LEN(jobs)]);
    p->status = pod_status_create(0);
    p->status->state = (enum pod_state)(sim_random(random) % POD_STATES);
    if (sim_random(random) % 4 == 0) {
        p->ended = POD_STATE_FAILED;
        p->end = pod_status_create(0);
    }
    return p;
}

static void expect_order(const struct pod_set *s)
{
    size_t members = 0, at = 0;
    for (size_t i = 0; i < s->n_pods; i++) {
        const struct applied_pod *p = s->pods[i];
        const char *job = p->demand.job;
        cr_assert_eq(s->states[i], pod_state_shown(p, NULL));
        cr_assert_eq(pod_set_find(s, p->namespace, p->name), p);
        cr_assert_eq(pod_set_find_uid(s, p->uid), p);
        cr_assert_eq(pod_set_from(s, p->namespace, p->name, false), i);
        cr_assert_eq(pod_set_from(s, p->namespace, p->name, true), i + 1);
        if (!*job || p->demand.role == ROLE_SERVICE)
            continue;
        members++;
        size_t from = pod_set_job_from(s, p->namespace, job, false);
        size_t end = pod_set_job_from(s, p->namespace, job, true), found = 0;
        for (size_t k = from; k < end; k++) {
            cr_assert_str_eq(s->by_job[k]->demand.job, job);
            cr_assert_eq(pod_set_job_states(s, k, k + 1),
                         1u << pod_state_shown(s->by_job[k], NULL));
            found += s->by_job[k] == p;
        }
        cr_assert_eq(found, 1);
        cr_assert_eq(pod_set_job_end(s, from), end);
    }
    cr_assert_eq(members, s->n_by_job);
    for (at = 1; at < s->n_by_job; at++)
        cr_assert_leq(
            strcmp(s->by_job[at - 1]->namespace, s->by_job[at]->namespace), 0);
}

Test(applied_set, has_its_pods_in_order_and_by_job)
{
    uint64_t random = 9;
    const struct demand_config config = {0};
    struct applied *applied = applied_create(&config);
    for (unsigned i = 0; i < CHANGES; i++) {
        /* somebody looks at it now and then, so that it is copied */
        struct pod_set *looked = i % 7 ? NULL : applied_get(applied);
        struct pod_set *s = applied_writable(applied);
        cleanup_with(applied_pod) struct applied_pod *p =
            make(sim_random(&random) % PODS, &random);
        if (sim_random(&random) % 3)
            pod_set_put(s, p);
        else
            pod_set_remove(s, p->namespace, p->name);
        if (i % 50 == 0)
            expect_order(s);
        pod_set_unref(looked);
    }
    cleanup_with(pod_set) struct pod_set *set = applied_get(applied);
    cr_expect_gt(set->n_by_job, 10);
    expect_order(set);
    applied_destroy(applied);
}
