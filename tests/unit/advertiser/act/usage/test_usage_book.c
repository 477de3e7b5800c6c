#include "advertiser/act/usage/usage_book.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/mem.h"

enum { MIB = 1 << 20, SECOND = 1000000000 };

static struct usage_book book;
static uint64_t version;

static void tear_down(void)
{
    usage_book_fini(&book);
}

TestSuite(usage_book, .fini = tear_down);

struct used {
    const char *id, *uid;
    uint64_t cpu_ms, mib;
};

/* What containers have used until that second; was something shown? */
static bool look(int64_t at_s, const struct used *list, size_t n)
{
    struct cri_pair labels[8];
    struct cri_usage usages[8] = {0};
    for (size_t i = 0; i < n; i++) {
        struct cri_usage *u = &usages[i];
        labels[i] = (struct cri_pair){"biga.dev/pod-uid", list[i].uid};
        (void)snprintf(u->id, sizeof u->id, "%s", list[i].id);
        u->labels = &labels[i];
        u->n_labels = list[i].uid != NULL;
        u->cpu_ns = list[i].cpu_ms * 1000000;
        u->at_ns = at_s * SECOND;
        u->memory = list[i].mib * MIB;
    }
    const struct cri_usages all = {usages, n};
    const struct usage_time time = {.ms = at_s * 1000, .wall_s = 1000 + at_s};
    bool changed = usage_book_take(&book, &all, time, version);
    version += changed;
    return changed;
}

#define LOOK(at_s, ...)                        \
    look((at_s), (struct used[]){__VA_ARGS__}, \
         ARRAY_LEN(((struct used[]){__VA_ARGS__})))

static void expect(const char *uid, uint64_t millicores, uint64_t mib)
{
    const struct usage_now *now = uid ? usage_book_find(&book, uid)
                                      : &book.all.shown;
    cr_assert_not_null(now, "%s", uid);
    cr_expect_eq(now->cpu_millicores, millicores, "%s: %llu", uid ? uid : "all",
                 (unsigned long long)now->cpu_millicores);
    cr_expect_eq(now->memory_mib, mib, "%s: %llu", uid ? uid : "all",
                 (unsigned long long)now->memory_mib);
}

Test(usage_book, sums_containers_by_pod_and_all_of_them)
{
    cr_expect_not(LOOK(10, {"b", "y", 0, 10}, {"a", "x", 5000, 20}));
    cr_expect_null(usage_book_find(&book, "x"), "of one look nothing is known");
    cr_expect_eq(book.all.shown.version, 0);
    cr_expect(LOOK(20, {"a", "x", 15000, 20}, {"b", "y", 20000, 10},
                   {"c", "x", 500, 7}, {"d", NULL, 100, 3}));
    expect("x", 1000, 27); /* what is new has memory, and cores next time */
    expect("y", 2000, 10);
    expect(NULL, 3000, 40);
    cr_expect_eq(usage_book_find(&book, "x")->at_s, 1020);
    cr_expect(LOOK(30, {"a", "x", 25000, 20}, {"c", "x", 5500, 7}));
    expect("x", 1500, 27);
    expect(NULL, 1500, 27);
    cr_expect_null(usage_book_find(&book, "y"), "it is gone");
}

Test(usage_book, shows_what_differs_noticeably)
{
    (void)LOOK(10, {"a", "x", 0, 200});
    cr_expect(LOOK(20, {"a", "x", 10000, 200})); /* one core */
    uint64_t before = version;
    cr_expect_not(LOOK(30, {"a", "x", 20900, 215})); /* 1.09, 7 % more */
    cr_expect_eq(version, before);
    expect("x", 1000, 200);
    cr_expect(LOOK(40, {"a", "x", 32100, 215})); /* 1.12 */
    expect("x", 1120, 215);
    cr_expect_eq(usage_book_find(&book, "x")->version, version);
    cr_expect(LOOK(50, {"a", "x", 43300, 300}));
    expect("x", 1120, 300);
    cr_expect(LOOK(60, {"a", "x", 43300, 300})); /* none any more */
    expect("x", 0, 300);
    cr_expect_not(LOOK(70, {"a", "x", 43700, 300})); /* 0.04 is none */
}

Test(usage_book, tells_again_what_stays)
{
    (void)LOOK(10, {"a", "x", 0, 200});
    cr_expect(LOOK(20, {"a", "x", 10000, 200})); /* one core */
    cr_expect_not(LOOK(30, {"a", "x", 20000, 200}));
    cr_expect_not(LOOK(40, {"a", "x", 30000, 200}));
    cr_expect(LOOK(50, {"a", "x", 40500, 200}));
    expect("x", 1000, 200);
    cr_expect_eq(usage_book_find(&book, "x")->version, version);
    cr_expect_eq(book.all.shown.version, version);
    cr_expect_eq(usage_book_find(&book, "x")->at_s, 1020, "since then");
    cr_expect_not(LOOK(60, {"a", "x", 50000, 200}));
    cr_expect(LOOK(80, {"a", "x", 70000, 200}));
}

Test(usage_book, of_a_runtime_without_answer_nothing_is_known)
{
    const struct usage_time then = {.ms = 25000, .wall_s = 1025};
    (void)LOOK(10, {"a", "x", 0, 200});
    cr_expect_not(usage_book_lose(&book, then, version), "nothing was known");
    cr_expect(LOOK(20, {"a", "x", 10000, 200}));
    cr_expect(usage_book_lose(&book, then, version++));
    cr_expect_not(usage_book_find(&book, "x")->known);
    cr_expect_eq(usage_book_find(&book, "x")->version, version);
    cr_expect_not(book.all.shown.known);
    cr_expect_eq(book.all.shown.version, version);
    cr_expect_not(usage_book_lose(&book, then, version));
    cr_expect(LOOK(40, {"a", "x", 30000, 200})); /* the same as before */
    expect("x", 1000, 200);
    cr_expect_eq(usage_book_find(&book, "x")->at_s, 1040);
}

Test(usage_book, a_runtime_without_containers_uses_nothing)
{
    cr_expect_not(look(10, NULL, 0));
    cr_expect(look(20, NULL, 0));
    expect(NULL, 0, 0);
    cr_expect_not(look(30, NULL, 0));
}

Test(usage_book, a_clock_that_goes_back_is_not_believed)
{
    (void)LOOK(10, {"a", "x", 1000, 1});
    cr_expect_not(LOOK(10, {"a", "x", 9000, 1}) &&
                  usage_book_find(&book, "x") != NULL);
    cr_expect_null(usage_book_find(&book, "x"));
    (void)LOOK(5, {"a", "x", 9500, 1});
    cr_expect_null(usage_book_find(&book, "x"));
    (void)LOOK(15, {"a", "x", 9000, 1}); /* made anew under its id */
    cr_expect_null(usage_book_find(&book, "x"));
    (void)LOOK(25, {"a", "x", 10000, 1});
    expect("x", 100, 1);
}

Test(usage_book, a_uid_that_is_too_long_is_nobodys)
{
    char uid[ACT_UID_MAX + 2];
    memset(uid, 'u', sizeof uid - 1);
    uid[sizeof uid - 1] = '\0';
    (void)LOOK(10, {"a", uid, 1000, 1});
    (void)LOOK(20, {"a", uid, 2000, 1});
    expect(NULL, 100, 1);
    cr_expect_eq(book.n_pods, 0);
}

/* The extender refuses the report of a node that tells more than can be. */
Test(usage_book, what_cannot_be_is_cut)
{
    const uint64_t cpu_ms = UINT64_MAX / 1000000, mib = UINT64_MAX / MIB;
    const uint64_t most = UINT64_C(1) << 40; /* node_report.h */
    (void)LOOK(10, {"a", "x", 0, mib});
    cr_expect(LOOK(20, {"a", "x", cpu_ms, mib}));
    const struct usage_now *now = usage_book_find(&book, "x");
    cr_expect_leq(now->cpu_millicores, most);
    cr_expect_leq(now->memory_mib, most);
}
