/* Slices that are decoded on several threads come in their order, each as it
 * is decoded by itself. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "extender/keep/slice_loader.h"
#include "lib/base/mem.h"
#include "tests/lib/sim/simstate.h"

enum { HOSTS = 1500, LONG = 200000 };

/* Every seventh is refused, for one of four reasons. */
static char *body_of(unsigned i)
{
    char node[16];
    (void)snprintf(node, sizeof node, "n%u", i);
    char *json = sim_slice(node, 1 + i % 8, "boot", 1 + i % 3, 0);
    if (i % 28 == 7)
        json[strlen(json) - 1] = '\0';
    else if (i % 28 == 14)
        memcpy(json, "{}", 3);
    else if (i % 28 == 21)
        *strstr(json, node) = '_';
    else if (i % 28 == 0)
        json[0] = '\0';
    return json;
}

struct seen {
    struct slice_loader *loader; /* NULL: nothing is learnt */
    unsigned n, refused, known;
};

static struct topo *joined(struct slice *slice)
{
    struct topo *topo = NULL;
    cr_assert_eq(slice_join(&slice, 1, &topo, NULL), 0);
    return topo;
}

/* Also what is learnt has to be as it is decoded. */
static void look_at_topo(struct seen *seen, const struct stored_slice *s,
                         struct slice *decoded)
{
    cleanup_with(topo) struct topo *topo = joined(s->slice);
    cleanup_with(topo) struct topo *want = joined(decoded);
    char hash[17], want_hash[17];
    slice_content_hash(topo, hash);
    slice_content_hash(want, want_hash);
    cr_assert_str_eq(hash, want_hash);
    seen->known += !s->is_new;
    if (seen->loader)
        slice_loader_learn(seen->loader, s, topo);
}

static void look(void *ctx, const struct stored_slice *s)
{
    struct seen *seen = ctx;
    cleanup_free char *json = body_of(seen->n);
    cleanup_with(slice) struct slice *slice = NULL;
    struct error err = {0};
    char name[16];
    (void)snprintf(name, sizeof name, "s%u", seen->n);
    cr_assert_str_eq(s->name, name);
    cr_assert_eq(s->resource_version, seen->n + 1);
    cr_assert_eq(s->size, strlen(json));
    cr_assert_eq(memcmp(s->json, json, s->size), 0);
    if (slice_decode(json, s->size, &slice, &err) == 0) {
        cr_assert_not_null(s->slice, "%s", s->error.text);
        cr_assert_str_eq(slice_get_name(s->slice), slice_get_name(slice));
        cr_assert_str_eq(slice_get_hash(s->slice), slice_get_hash(slice));
        cr_assert_eq(slice_get_given(s->slice), slice_get_given(slice));
        look_at_topo(seen, s, slice);
    } else {
        cr_assert_null(s->slice);
        cr_assert_eq(s->error.code, err.code);
        cr_assert_str_eq(s->error.text, err.text);
        seen->refused++;
    }
    seen->n++;
}

static void add(struct slice_loader *l, unsigned i)
{
    cleanup_free char *json = body_of(i);
    char name[16];
    (void)snprintf(name, sizeof name, "s%u", i);
    slice_loader_add(l, name, json, strlen(json), i + 1);
}

Test(slice_loader, gives_all_in_their_order)
{
    struct seen seen = {0};
    struct slice_loader *l = slice_loader_create(look, &seen);
    for (unsigned i = 0; i < HOSTS; i++)
        add(l, i);
    cr_expect_lt(seen.n, HOSTS, "some are still on their way");
    cr_expect_gt(seen.n, 0, "and others are not kept until the end");
    slice_loader_destroy(l);
    cr_expect_eq(seen.n, HOSTS);
    cr_expect_eq(seen.refused, (HOSTS + 6) / 7);
    cr_expect_eq(seen.known, 0, "nothing was learnt");
}

Test(slice_loader, knows_again_what_it_learnt)
{
    struct seen seen = {0};
    struct slice_loader *l = slice_loader_create(look, &seen);
    seen.loader = l;
    for (unsigned i = 0; i < HOSTS; i++)
        add(l, i);
    slice_loader_destroy(l);
    cr_expect_eq(seen.n, HOSTS);
    cr_expect_eq(seen.refused, (HOSTS + 6) / 7);
    cr_expect_gt(seen.known, 0);
}

Test(slice_loader, gives_few_and_none)
{
    struct seen seen = {0};
    struct slice_loader *l = slice_loader_create(look, &seen);
    slice_loader_destroy(l);
    cr_expect_eq(seen.n, 0);
    l = slice_loader_create(look, &seen);
    add(l, 0);
    add(l, 1);
    cr_expect_eq(seen.n, 0);
    slice_loader_destroy(l);
    cr_expect_eq(seen.n, 2);
}

static void count(void *ctx, const struct stored_slice *s)
{
    *(unsigned *)ctx += s->size == LONG;
}

/* However large they are, few are held at once. */
Test(slice_loader, takes_large_ones)
{
    unsigned n = 0, most_held = 0;
    cleanup_free char *json = xcalloc(1, LONG);
    struct slice_loader *l = slice_loader_create(count, &n);
    memset(json, ' ', LONG);
    for (unsigned i = 0; i < 600; i++) {
        slice_loader_add(l, "s", json, LONG, 1);
        if (i + 1 - n > most_held)
            most_held = i + 1 - n;
    }
    slice_loader_destroy(l);
    cr_expect_eq(n, 600);
    cr_expect_leq(most_held, 2 * (4 * 9 + 2));
}
