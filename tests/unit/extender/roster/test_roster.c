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
