/* Names are found however they come: in the roster's order, in several streams
 * at once, escaped, unknown, again. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "extender/roster/roster.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

enum { NODES = 900, TEXT_MAX = 1 << 20 };

static char *names[NODES];

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static struct roster *roster_of(const char *format)
{
    for (int i = 0; i < NODES; i++) {
        free(names[i]);
        names[i] = xasprintf(format, i);
    }
    qsort(names, NODES, sizeof *names, compare);
    return roster_create((const char *const *)names, NODES);
}

static void add(struct str *text, const char *name)
{
    str_add(text, text->size > 1 ? ",\"" : "\"");
    str_add(text, name);
    str_add(text, "\"");
}

/* `text` is an array without its end; read it in pieces of `piece`. */
static void check_read(const struct roster *r, struct str *text, size_t piece)
{
    struct jscan s;
    struct roster_walk walk;
    struct jtext read[NODES * 2];
    int32_t indexes[NODES * 2], many[NODES * 2];
    size_t n = 0, got;
    str_add(text, "]");
    jscan_init(&s, text->data, text->size);
    cr_assert(jscan_array(&s));
    roster_walk_init(&walk, r);
    do {
        got = roster_read(&walk, &s, read + n, indexes + n, piece);
        n += got;
    } while (got == piece);
    cr_assert(jscan_end(&s), "%s at byte %zu", s.fault, s.fault_at);
    roster_find_many(r, read, n, many);

    struct jtext expected;
    size_t at = 0;
    jscan_init(&s, text->data, text->size);
    cr_assert(jscan_array(&s));
    for (; jscan_element(&s) && jscan_string(&s, &expected); at++) {
        char name[6 * 253 + 1];
        size_t size = jtext_decode(&expected, name);
        cr_assert(at < n && read[at].data == expected.data &&
                  read[at].size == expected.size &&
                  read[at].escaped == expected.escaped);
        cr_assert_eq(indexes[at], roster_find(r, name, size), "%s", name);
        cr_assert_eq(many[at], indexes[at]);
    }
    cr_assert_eq(at, n);
}

Test(roster, finds_names_in_streams_of_any_number)
{
    static const char *const formats[] = {"n%d", "node-%05d",
                                          "ip-10-0-%d.ec2.internal"};
    for (size_t f = 0; f < ARRAY_LEN(formats); f++) {
        struct roster *r = roster_of(formats[f]);
        for (int streams = 1; streams <= 40; streams += 3) {
            cleanup_str struct str text = STR_INIT(TEXT_MAX);
            str_add(&text, "[");
            for (int i = 0; i < NODES / streams; i++)
                for (int k = 0; k < streams; k++)
                    add(&text, names[(k * (NODES / streams) + i + 77) % NODES]);
            check_read(r, &text, f ? 7 : NODES * 2);
        }
        roster_unref(r);
    }
}

Test(roster, finds_names_that_come_in_no_order)
{
    struct roster *r = roster_of("node-%05d");
    unsigned seed = 1;
    for (int round = 0; round < 50; round++) {
        cleanup_str struct str text = STR_INIT(TEXT_MAX);
        str_add(&text, "[");
        int at = 0;
        for (int i = 0; i < NODES; i++) {
            int die = rand_r(&seed) % 32;
            at = die == 0 ? rand_r(&seed) % NODES : (at + 1) % NODES;
            if (die == 1)
                add(&text, "no-such-node");
            else if (die == 2)
                add(&text, "n\\u006fde-00003");
            else if (die == 3)
                add(&text, "node-0\303\244");
            else if (die == 4)
                str_add(&text, text.size > 1 ? " , \"\"" : "\"\"");
            else
                add(&text, names[at]);
        }
        check_read(r, &text, 1 + (size_t)round * 5);
    }
    roster_unref(r);
}

Test(roster, a_name_that_json_escapes_is_not_taken_for_its_escape)
{
    static const char *const odd[] = {"a", "a\\u0062", "ab", "b\"c"};
    struct roster *r = roster_create(odd, ARRAY_LEN(odd));
    cleanup_str struct str text = STR_INIT(TEXT_MAX);
    str_add(&text, "[\"a\",\"a\\u0062\",\"ab\"");
    check_read(r, &text, 8);
    roster_unref(r);
}

/* What compares as expected is no string without its quotes. */
Test(roster, reads_no_name_without_its_end)
{
    struct roster *r = roster_of("node-%05d");
    cleanup_str struct str text = STR_INIT(TEXT_MAX);
    str_add(&text, "[");
    for (int i = 0; i < 100; i++)
        add(&text, names[i]);
    for (size_t size = 1; size < text.size; size++) {
        struct jtext read[NODES];
        int32_t indexes[NODES];
        struct jscan s;
        struct roster_walk walk;
        cleanup_free char *cut = xmemdup(text.data, size);
        jscan_init(&s, cut, size);
        cr_assert(jscan_array(&s));
        roster_walk_init(&walk, r);
        (void)roster_read(&walk, &s, read, indexes, NODES);
        cr_assert_not_null(s.fault);
    }
    roster_unref(r);
}

/* --- rosters that are derived ----------------------------------------------- */

/* Which of the names a roster has, and their ids. */
struct having {
    struct roster *r;
    bool has[NODES];
};

static void expect_name(void *ctx, size_t index, const char *name, size_t size)
{
    const struct roster *r = ctx;
    uint32_t id = roster_id(r, index);
    cr_assert_eq(roster_find(r, name, size), (int32_t)index);
    cr_assert_eq(roster_find_id(r, id), (int32_t)index);
}

/* As one that is made of these names at once. */
static void expect_having(const struct having *h)
{
    const char *list[NODES];
    size_t n = 0;
    cleanup_str struct str text = STR_INIT(TEXT_MAX);
    str_add(&text, "[");
    for (size_t i = 0; i < NODES; i++) {
        add(&text, names[i]);
        if (h->has[i])
            list[n++] = names[i];
    }
    struct roster *fresh = roster_create(list, n);
    for (size_t i = 0; i < NODES; i++)
        cr_assert_eq(roster_find(h->r, names[i], strlen(names[i])),
                     roster_find(fresh, names[i], strlen(names[i])));
    roster_each(h->r, expect_name, h->r);
    check_read(h->r, &text, 100);
    roster_unref(fresh);
}

/* About one name in `part` comes or goes. */
static struct having change(const struct having *before, int part,
                            unsigned *seed)
{
    struct having after = *before;
    struct roster_run runs[NODES];
    size_t n = 0, old = 0;
    for (size_t i = 0; i < NODES; i++) {
        bool had = before->has[i];
        after.has[i] = had != (rand_r(seed) % part == 0);
        if (after.has[i] && had)
            runs[n++] = (struct roster_run){.from = old, .n = 1};
        else if (after.has[i])
            runs[n++] = (struct roster_run){.name = names[i], .n = 1};
        old += had;
    }
    after.r = roster_derive(before->r, runs, n);
    return after;
}

static void expect_same_ids(const struct having *a, const struct having *b)
{
    for (size_t i = 0; i < NODES; i++)
        if (a->has[i] && b->has[i] && roster_has_ids_of(a->r, b->r)) {
            int32_t one = roster_find(a->r, names[i], strlen(names[i]));
            int32_t two = roster_find(b->r, names[i], strlen(names[i]));
            cr_assert_eq(roster_id(a->r, (size_t)one),
                         roster_id(b->r, (size_t)two));
        }
}

/* Whatever is derived of a roster, it stays as it was, and both of what two
 * threads derive are right. */
Test(roster, follows_names_that_come_and_go)
{
    unsigned seed = 3;
    size_t shared = 0, rounds = 300;
    roster_unref(roster_of("node-%d"));
    struct having now = {.r = roster_create(NULL, 0)};
    for (size_t i = 0; i < rounds; i++) {
        int part = 1 << rand_r(&seed) % 12;
        struct having next = change(&now, part, &seed);
        struct having other = change(&now, part, &seed);
        expect_having(&now);
        expect_having(&next);
        expect_having(&other);
        expect_same_ids(&now, &next);
        expect_same_ids(&next, &other);
        shared += roster_has_ids_of(now.r, next.r);
        roster_unref(now.r);
        roster_unref(other.r);
        now = next;
    }
    cr_expect(shared > rounds / 2 && shared < rounds, "%zu", shared);
    roster_unref(now.r);
}

/* As many as are there are copied into a new one each time, so that is not to
 * happen often. */
Test(roster, makes_a_new_index_when_that_is_full_or_mostly_of_names_gone)
{
    enum { MANY = 5000 };
    struct roster *r = roster_create(NULL, 0), *next;
    size_t made = 0;
    for (size_t i = 0; i < MANY; i++) {
        cleanup_free char *name = xasprintf("node-%05zu", i);
        const struct roster_run runs[] = {{.n = i}, {.name = name, .n = 1}};
        next = roster_derive(r, runs, 2);
        made += !roster_has_ids_of(r, next);
        cr_assert_eq(roster_find(next, name, strlen(name)), (int32_t)i);
        roster_unref(r);
        r = next;
    }
    cr_expect(made > 5 && made < 20, "%zu", made);
    next = roster_derive(r, &(struct roster_run){.from = 7, .n = MANY / 2}, 1);
    cr_expect(roster_has_ids_of(r, next));
    cr_expect_eq(roster_find(next, "node-00003", 10), ROSTER_NONE);
    cr_expect_eq(roster_find(next, "node-00008", 10), 1);
    roster_unref(next);
    next = roster_derive(r, &(struct roster_run){.from = 7, .n = 1}, 1);
    cr_expect_not(roster_has_ids_of(r, next));
    cr_expect_eq(roster_id(next, 0), 0);
    cr_expect_eq(roster_find(next, "node-00008", 10), ROSTER_NONE);
    cr_expect_eq(roster_find(next, "node-00007", 10), 0);
    roster_unref(next);
    roster_unref(r);
}
