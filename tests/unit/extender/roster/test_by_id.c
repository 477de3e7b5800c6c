/* Things by ids: versions stay as they were, and say what is different. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "extender/roster/by_id.h"

enum { IDS = 6000, THINGS = 50, VERSIONS = 40, CHANGES = 30 };

/* How many refer to each thing, beside itself. */
static unsigned counts[THINGS];

static void thing_ref(void *thing)
{
    (*(unsigned *)thing)++;
}

static void thing_unref(void *thing)
{
    cr_assert_gt(*(unsigned *)thing, 0);
    (*(unsigned *)thing)--;
}

static const struct by_id_kind kind = {thing_ref, thing_unref};

struct version {
    struct by_id x;
    unsigned *is[IDS];
};

/* From one with few ids to one with some of each level of the tree. */
static uint32_t id_of(size_t i)
{
    return i < IDS - 10 ? (uint32_t)i
                        : BY_ID_MAX - 1 - (uint32_t)(IDS - 1 - i) * 70000;
}

static void change(struct version *v, unsigned *seed)
{
    for (int i = 0; i < CHANGES; i++) {
        size_t at = (size_t)rand_r(seed) % IDS;
        int which = rand_r(seed) % (THINGS + 20);
        unsigned *thing = which < THINGS ? &counts[which] : NULL;
        if (thing)
            thing_ref(thing);
        by_id_set(&v->x, id_of(at), thing);
        v->is[at] = thing;
    }
}

struct expected {
    const struct version *before, *after;
    size_t at; /* ids before are the same, or were visited */
};

static void skip_same(struct expected *e)
{
    while (e->at < IDS && e->before->is[e->at] == e->after->is[e->at])
        e->at++;
}

static void expect(void *ctx, uint32_t id, void *before, void *after)
{
    struct expected *e = ctx;
    skip_same(e);
    cr_assert_lt(e->at, IDS);
    cr_assert_eq(id, id_of(e->at));
    cr_assert_eq(before, e->before->is[e->at]);
    cr_assert_eq(after, e->after->is[e->at]);
    e->at++;
}

static void expect_diff(const struct version *before,
                        const struct version *after)
{
    struct expected e = {before, after, 0};
    by_id_diff(&before->x, &after->x, expect, &e);
    skip_same(&e);
    cr_assert_eq(e.at, IDS);
}

Test(by_id, versions_stay_and_say_what_is_different)
{
    static struct version versions[VERSIONS];
    unsigned seed = 5;
    versions[0].x.kind = &kind;
    for (int i = 1; i < VERSIONS; i++) {
        const struct version *from = &versions[rand_r(&seed) % i];
        versions[i] = *from;
        versions[i].x = by_id_ref(&from->x);
        change(&versions[i], &seed);
    }
    for (int i = 0; i < VERSIONS; i++) {
        for (size_t at = 0; at < IDS; at++)
            cr_assert_eq(by_id_get(&versions[i].x, id_of(at)),
                         versions[i].is[at]);
        expect_diff(&versions[i], &versions[rand_r(&seed) % VERSIONS]);
    }
    for (int i = 0; i < VERSIONS; i++)
        by_id_fini(&versions[i].x);
    for (int i = 0; i < THINGS; i++)
        cr_assert_eq(counts[i], 0);
}
