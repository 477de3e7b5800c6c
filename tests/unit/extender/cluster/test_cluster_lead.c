/* How a replica that ends stops leading: who asks it to lead meanwhile finds
 * nothing that may be gone. */
#include <criterion/criterion.h>
#include <errno.h>
#include <sched.h>

#include "extender/cluster/cluster_private.h"
#include "tests/lib/sim/simstate.h"

Test(cluster_lead, leads_no_more_once_it_ends)
{
    struct cluster c = {
        .config.writer = sim_writer(NULL)}; /* without anything to lead with */
    cr_assert_eq(pthread_mutex_init(&c.lead.lock, NULL), 0);
    atomic_store(&c.lead.done, true);
    cr_expect_eq(cluster_lead(&c), 0);
    cluster_lead_end(&c);
    cr_expect_eq(cluster_lead(&c), -EAGAIN, "ready as it was");
    cluster_follow(&c); /* elect ends */
    cr_expect_eq(cluster_lead(&c), -EAGAIN, "with no watch to look at");
    cr_expect_not(c.lead.running);
    (void)pthread_mutex_destroy(&c.lead.lock);
    writer_stop(c.config.writer);
}

static void *end_leading(void *ctx)
{
    cluster_lead_end(ctx);
    return NULL;
}

struct witness {
    struct cluster *c;
    atomic_bool go, over;
};

static void *lead_on(void *ctx)
{
    struct witness *w = ctx;
    while (!atomic_load(&w->go))
        sched_yield();
    atomic_store(&w->over, true);
    return NULL;
}

/* Whoever has begun to lead is waited for. */
Test(cluster_lead, ends_after_its_thread)
{
    struct cluster c = {.electing = true};
    struct witness w = {.c = &c};
    pthread_t ender;
    cr_assert_eq(pthread_mutex_init(&c.lead.lock, NULL), 0);
    cr_assert_eq(pthread_create(&c.lead.thread, NULL, lead_on, &w), 0);
    c.lead.running = true;
    cr_assert_eq(pthread_create(&ender, NULL, end_leading, &c), 0);
    while (!atomic_load(&c.lead.stop))
        sched_yield();
    cr_expect_eq(cluster_lead(&c), -EAGAIN, "at once, while it is waited for");
    atomic_store(&w.go, true);
    (void)pthread_join(ender, NULL);
    cr_expect(atomic_load(&w.over));
    cr_expect_not(c.lead.running);
    (void)pthread_mutex_destroy(&c.lead.lock);
}
