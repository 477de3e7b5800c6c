#include "extender/state/alloc_order.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "tests/lib/sim/simstate.h"

enum { PODS = 240, ROUNDS = 300 };

/* A pod of one of some jobs, or of none, or a service's. */
static struct allocation *make(unsigned pod, uint64_t number, uint64_t *random)
{
    static const char *const jobs[] = {"", "a", "b", "ba", "c", "d", "zz"};
    char name[16];
    (void)snprintf(name, sizeof name, "p%u", pod);
    struct demand d = sim_pod(name,
                              sim_random(random) % 8 ? ROLE_HOST : ROLE_SERVICE,
                              jobs[sim_random(random) % ARRAY_LEN(jobs)],
                              (int)(sim_random(random) % 40));
    (void)snprintf(d.namespace, sizeof d.namespace, "ns%u", pod % 3);
    d.size = 1 + (int32_t)(sim_random(random) % 50);
    struct allocation *a = allocation_create(&d, "node");
    a->number = number;
    return a;
}

/* Some pods leave, come, or get another place. */
static void change(struct alloc_index **x, unsigned n, uint64_t *random)
{
    while (n-- > 0) {
        unsigned pod = sim_random(random) % PODS;
        cleanup_with(allocation) struct allocation *a =
            make(pod, sim_random(random) % 100, random);
        if (sim_random(random) % 3)
            alloc_index_put(x, a);
        else
            alloc_index_drop(x, a);
    }
}

static uint32_t at_least(uint32_t a, int32_t b)
{
    return (uint32_t)b > a ? (uint32_t)b : a;
}

/* As the index itself says, one by one. */
static void expect_jobs(const struct alloc_order *o)
{
    size_t at = 0;
    for (size_t i = 0; i < o->n_jobs; i++) {
        const struct alloc_job *j = &o->jobs[i];
        const struct demand *d = alloc_job_demand(o, j);
        size_t n;
        uint32_t pairs = 0, size = 0;
        cleanup_free const struct allocation **members =
            alloc_index_find_job(o->of, d->namespace, d->job, &n);
        cr_assert_eq(j->first, at);
        cr_assert_eq(j->n, n);
        for (size_t k = 0; k < n; k++) {
            const struct demand *m = &members[k]->demand;
            cr_assert_eq(members[k], o->members[at + k]);
            pairs += k == 0 || m->pair != members[k - 1]->demand.pair;
            size = at_least(at_least(size, m->size), m->pair + 1);
        }
        cr_assert_eq(j->n_pairs, pairs);
        cr_assert_eq(j->size, size);
        cr_assert_eq(alloc_order_job_from(o, d->namespace, d->job, false), i);
        cr_assert_eq(alloc_order_job_from(o, d->namespace, d->job, true),
                     i + 1);
        at += n;
    }
    cr_assert_eq(at, o->n_members);
}

static void expect_order(const struct alloc_order *o)
{
    size_t n;
    cleanup_free const struct allocation **all = alloc_index_list(o->of, &n);
    cr_assert_eq(o->n_pods, n);
    for (size_t i = 0; i < n; i++)
        cr_assert_eq(o->pods[i], all[i]);
    expect_jobs(o);
}

Test(alloc_order, follows_the_index)
{
    uint64_t random = 5;
    struct alloc_index *x = alloc_index_create();
    struct alloc_order *o = alloc_order_create(x, NULL);
    size_t most = 0;
    cr_expect_eq(o->n_pods + o->n_members + o->n_jobs, 0);
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct alloc_order *last = o;
        change(&x, sim_random(&random) % (i % 10 ? 6 : 60), &random);
        o = alloc_order_create(x, last);
        alloc_order_unref(last);
        expect_order(o);
        most = o->n_jobs > most ? o->n_jobs : most;
    }
    cr_expect_eq(most, 18, "each job of each namespace: %zu", most);
    struct alloc_order *anew = alloc_order_create(x, NULL);
    expect_order(anew);
    cr_expect_eq(anew->n_members, o->n_members);
    cr_expect_eq(alloc_order_job_from(o, "", "", false), 0);
    cr_expect_eq(alloc_order_job_from(o, "ns9", "", false), o->n_jobs);
    alloc_order_unref(anew);
    alloc_order_unref(o);
    alloc_index_unref(x);
}

Test(alloc_order, becomes_empty)
{
    uint64_t random = 1;
    struct alloc_index *none = alloc_index_create(), *x = alloc_index_create();
    change(&x, 200, &random);
    struct alloc_order *all = alloc_order_create(x, NULL);
    struct alloc_order *empty = alloc_order_create(none, all);
    struct alloc_order *again = alloc_order_create(x, empty);
    cr_expect_eq(empty->n_pods + empty->n_members + empty->n_jobs, 0);
    cr_expect_gt(all->n_jobs, 0);
    expect_order(again);
    alloc_order_unref(again);
    alloc_order_unref(empty);
    alloc_order_unref(all);
    alloc_index_unref(none);
    alloc_index_unref(x);
}

/* Names of few letters and of all lengths, so that many begin alike, and some
 * differ only far behind. */
static void name_make(char *ret, size_t max, uint64_t *random)
{
    static const char letters[] = "a-\303z";
    size_t n = 1 + sim_random(random) % (max - 1);
    if (sim_random(random) % 2)
        n = n % 4 + 1;
    for (size_t i = 0; i < n; i++)
        ret[i] = i < n - 1 && n > 4 ? 'a' : letters[sim_random(random) % 4];
    ret[n] = '\0';
}

static void expect_sorted(size_t n, const char *prefix, uint64_t *random)
{
    cleanup_free const struct allocation **list = xcalloc(n + 1, sizeof *list);
    for (size_t i = 0; i < n; i++) {
        struct demand d = sim_pod("x", ROLE_HOST, "", 0);
        char name[41];
        name_make(name, 40, random);
        (void)snprintf(d.name, sizeof d.name, "%s%s", prefix, name);
        name_make(name, 40, random);
        (void)snprintf(d.namespace, sizeof d.namespace, "%s%s", prefix, name);
        list[i] = allocation_create(&d, "node");
    }
    allocation_sort_pods(list, n);
    for (size_t i = 1; i < n; i++)
        cr_assert_leq(allocation_compare_pod(list[i - 1], list[i]), 0,
                      "%s/%s before %s/%s", list[i - 1]->demand.namespace,
                      list[i - 1]->demand.name, list[i]->demand.namespace,
                      list[i]->demand.name);
    for (size_t i = 0; i < n; i++)
        allocation_unref((struct allocation *)list[i]);
}

Test(alloc_order, has_pods_in_the_order_of_their_names)
{
    uint64_t random = 20260117;
    for (size_t n = 0; n < 40; n++) {
        expect_sorted(n, "", &random);
        expect_sorted(n, "a-long-prefix-", &random);
    }
    expect_sorted(2000, "team-", &random);
}
