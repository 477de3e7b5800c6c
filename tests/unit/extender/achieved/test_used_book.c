#include "extender/achieved/used_book.h"

#include <criterion/criterion.h>
#include <string.h>

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
    cr_expect_eq(used_book_version(b), 3);
    told(b, "{\"pods\":[{\"uid\":\"u\",\"state\":\"running\"}]}", 2000);
    cr_expect_eq(used_book_version(b), 3);
    cr_expect(used_book_pod(b, "n", "u", 2000, &u));
    cr_expect_eq(u.cpu_milli, 5);
    cr_expect_not(used_book_pod(b, "other", "u", 2000, &u));
    cr_expect(used_book_place(b, "n", "host", 2000, &u));
    cr_expect_eq(u.cpu_milli, 9);
    cr_expect_not(used_book_place(b, "n", "u", 2000, &u));
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
