/* What is kept ready for those who look. */
#include "extender/app/scoped.h"

#include <criterion/criterion.h>

#include "extender/state/scope.h"
#include "lib/io/clock.h"
#include "tests/lib/sim/simfleet.h"
#include "tests/lib/sim/simstate.h"

static struct snapshot *with_pod(struct snapshot *s)
{
    struct draft *d = draft_create(s);
    struct demand pod = sim_pod("a", ROLE_HOST, "", 0);
    draft_allocate(d, allocation_create(&pod, "node000"));
    return draft_commit(d);
}

Test(scoped, keeps_no_order_of_old)
{
    struct scoped *c = scoped_create();
    struct snapshot *s = simfleet_create(2, 1), *next = with_pod(s);
    clock_set_fake(1000);
    struct alloc_order *old = scoped_order(c, s);
    clock_set_fake(1000 + SCOPED_KEEP_MS - 1);
    scoped_keep(c, next);
    cr_expect_eq(atomic_load(&old->refs), 2, "not yet");
    clock_set_fake(1000 + SCOPED_KEEP_MS);
    scoped_keep(c, next);
    cr_expect_eq(atomic_load(&old->refs), 1, "nobody else has it");
    struct alloc_order *now = scoped_order(c, next);
    cr_expect_eq(now->n_pods, 1);
    cr_expect_eq(atomic_load(&now->refs), 2);
    clock_set_fake(-1);
    alloc_order_unref(old);
    alloc_order_unref(now);
    snapshot_unref(s);
    snapshot_unref(next);
    scoped_destroy(c);
}

Test(scoped, forgets_who_does_not_ask)
{
    struct scoped *c = scoped_create();
    struct scope *scope = scope_create((const char *const[]){"ns"}, 1);
    struct snapshot *s = simfleet_create(2, 1);
    clock_set_fake(1000);
    struct snapshot *seen = scoped_get(c, snapshot_ref(s), scope);
    clock_set_fake(1000 + SCOPED_KEPT_MS);
    scoped_keep(c, s);
    cr_expect_eq(atomic_load(&seen->refs), 2);
    clock_set_fake(1001 + SCOPED_KEPT_MS);
    scoped_keep(c, s);
    cr_expect_eq(atomic_load(&seen->refs), 1);
    clock_set_fake(-1);
    snapshot_unref(seen);
    snapshot_unref(s);
    scope_unref(scope);
    scoped_destroy(c);
}
