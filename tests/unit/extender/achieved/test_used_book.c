#include "extender/achieved/used_book.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/mem.h"

static void told(struct used_book *b, const char *json, int64_t now_ms)
{
    cleanup_with(node_report) struct node_report *r = NULL;
    struct error err = {0};
    cr_assert_eq(node_report_parse(json, strlen(json), &r, &err), 0, "%s",
                 err.text);
    used_book_put(b, "n", r, now_ms);
}

#define USES(uid, n)                                                    \
    "{\"pods\":[{\"uid\":\"" uid "\",\"state\":\"running\",\"usage\":{" \
    "\"cpuMillicores\":" n ",\"memoryMib\":7}}]}"

Test(used_book, has_what_was_told_last)
{
    cleanup_with(used_book) struct used_book *b = used_book_create();
    struct used u;
    cr_expect_not(used_book_pod(b, "n", "u", 0, &u));
    told(b, USES("u", "5"), 1000);
    told(b, USES("v", "6"), 2000); /* says nothing of u, which stays */
    told(b,
         "{\"pods\":[],\"places\":[{\"name\":\"host\",\"health\":\"ready\","
         "\"usage\":{\"cpuMillicores\":9,\"memoryMib\":1}}]}",
         2000);
    cr_expect_eq(used_book_version(b, 2000), 3);
    told(b, USES("u", "5"), 2000); /* the same again */
    cr_expect_eq(used_book_version(b, 2000), 3);
    cr_expect(used_book_pod(b, "n", "u", 2000, &u));
    cr_expect_eq(u.cpu_milli, 5);
    cr_expect_not(used_book_pod(b, "other", "u", 2000, &u));
    cr_expect(used_book_place(b, "n", "host", 2000, &u));
    cr_expect_eq(u.cpu_milli, 9);
    cr_expect_not(used_book_place(b, "n", "u", 2000, &u));
}

Test(used_book, does_not_know_what_is_told_without_it)
{
    cleanup_with(used_book) struct used_book *b = used_book_create();
    struct used u;
    told(b, USES("u", "5"), 0);
    told(b,
         "{\"pods\":[],\"places\":[{\"name\":\"host\",\"health\":\"ready\","
         "\"usage\":{\"cpuMillicores\":9,\"memoryMib\":1}}]}",
         0);
    told(b,
         "{\"pods\":[{\"uid\":\"u\",\"state\":\"running\"}],\"places\":[{"
         "\"name\":\"host\",\"health\":\"lost\"}]}",
         1);
    cr_expect_not(used_book_pod(b, "n", "u", 1, &u));
    cr_expect_not(used_book_place(b, "n", "host", 1, &u));
    cr_expect_eq(used_book_version(b, 1), 4);
}

Test(used_book, says_by_its_version_what_is_old)
{
    cleanup_with(used_book) struct used_book *b = used_book_create();
    told(b, USES("u", "5"), 0);
    told(b, USES("v", "5"), 10000);
    told(b, USES("u", "5"), 40000);
    cr_expect_eq(used_book_version(b, 10000 + USED_BOOK_OLD_MS), 2);
    cr_expect_eq(used_book_version(b, 10001 + USED_BOOK_OLD_MS), 3);
    cr_expect_eq(used_book_version(b, 40000 + USED_BOOK_OLD_MS), 3);
    cr_expect_eq(used_book_version(b, 40001 + USED_BOOK_OLD_MS), 4);
    told(b, USES("u", "5"), 200000);
    cr_expect_eq(used_book_version(b, 200000), 5);
    cr_expect_eq(used_book_version(b, 200001 + USED_BOOK_OLD_MS), 6);
}

/* Each with pods of its own; and again once they are old. */
Test(used_book, has_a_cap)
{
    enum { PODS = 4096, NODES = USED_BOOK_ENTRIES_MAX / PODS };
    cleanup_with(used_book) struct used_book *b = used_book_create();
    struct node_report r = {.n_pods = PODS};
    struct used u;
    r.pods = xcalloc(PODS, sizeof *r.pods);
    for (size_t i = 0; i < PODS; i++) {
        r.pods[i].used = (struct used){.known = true, .cpu_milli = 1};
        (void)snprintf(r.pods[i].uid, sizeof r.pods[i].uid, "%zu", i);
    }
    for (int64_t ms = 0; ms < 2; ms++)
        for (size_t i = 0; i <= NODES; i++) {
            char name[16];
            (void)snprintf(name, sizeof name, "n%zu", i);
            used_book_put(b, name, &r, ms * (USED_BOOK_OLD_MS + 1));
            cr_assert_eq(
                used_book_pod(b, name, "7", ms * (USED_BOOK_OLD_MS + 1), &u),
                i < NODES);
        }
    free(r.pods);
}

Test(used_book, forgets_what_is_old)
{
    cleanup_with(used_book) struct used_book *b = used_book_create();
    struct used u;
    told(b, USES("u", "5"), 0);
    cr_expect(used_book_pod(b, "n", "u", USED_BOOK_OLD_MS, &u));
    cr_expect_not(used_book_pod(b, "n", "u", USED_BOOK_OLD_MS + 1, &u));
    cr_expect_not(u.known);
    told(b, USES("v", "6"), USED_BOOK_OLD_MS + 1);
    cr_expect_not(used_book_pod(b, "n", "u", USED_BOOK_OLD_MS, &u));
    cr_expect_not(used_book_pod(NULL, "n", "u", 0, &u));
}
