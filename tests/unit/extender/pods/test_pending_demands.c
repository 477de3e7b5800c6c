#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "extender/pods/pending_demands.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"

static struct demand pod(unsigned i, unsigned uid)
{
    struct demand d = {.role = ROLE_HOST, .cards = 1};
    (void)snprintf(d.namespace, sizeof d.namespace, "ns%u", i % 7);
    (void)snprintf(d.name, sizeof d.name, "pod-%u", i);
    (void)snprintf(d.uid, sizeof d.uid, "uid-%u", uid);
    return d;
}

Test(pending_demands, remembers_by_uid_and_by_name)
{
    struct pending_demands *s = pending_demands_create();
    struct demand d = pod(3, 30), found;
    cleanup_free char *why = NULL;
    cr_assert_not(pending_demands_find_uid(s, "uid-30", &found));
    pending_demands_put(s, &d);
    cr_assert(pending_demands_find_uid(s, "uid-30", &found));
    cr_assert_str_eq(found.name, "pod-3");
    cr_assert(pending_demands_find_name(s, "ns3", "pod-3", &found, &why));
    cr_assert_not(pending_demands_find_name(s, "ns4", "pod-3", &found, &why));
    d.cards = 4;
    pending_demands_put(s, &d);
    cr_assert(pending_demands_find_uid(s, "uid-30", &found));
    cr_assert_eq(found.cards, 4);
    pending_demands_forget(s, "ns3", "pod-3");
    cr_assert_not(pending_demands_find_uid(s, "uid-30", &found));
    pending_demands_destroy(s);
}

/* Since the first question, whatever is asked later. */
Test(pending_demands, knows_for_how_long_a_pod_waits)
{
    struct pending_demands *s = pending_demands_create();
    struct demand d = pod(1, 10);
    clock_set_fake(1000000);
    cr_expect_eq(pending_demands_waited_ms(s, "uid-10"), -1);
    pending_demands_offer(s, &d, NULL);
    clock_set_fake(1002500);
    pending_demands_put(s, &d);
    cr_expect_eq(pending_demands_waited_ms(s, "uid-10"), 2500);
    pending_demands_forget(s, "ns1", "pod-1");
    cr_expect_eq(pending_demands_waited_ms(s, "uid-10"), -1);
    clock_set_fake(-1);
    pending_demands_destroy(s);
}

Test(pending_demands, a_new_pod_of_the_same_name_is_the_newest)
{
    struct pending_demands *s = pending_demands_create();
    struct demand a = pod(1, 10), b = pod(1, 11), found;
    cleanup_free char *why = NULL;
    pending_demands_put(s, &a);
    pending_demands_put(s, &b);
    cr_assert(pending_demands_find_name(s, "ns1", "pod-1", &found, &why));
    cr_assert_str_eq(found.uid, "uid-11");
    cr_assert(pending_demands_find_uid(s, "uid-10", &found));
    pending_demands_destroy(s);
}

Test(pending_demands, the_oldest_make_room)
{
    struct pending_demands *s = pending_demands_create();
    struct demand found;
    for (unsigned i = 0; i < PENDING_DEMANDS_MAX + 100; i++) {
        struct demand d = pod(i, i);
        pending_demands_put(s, &d);
    }
    unsigned present = 0;
    for (unsigned i = 0; i < PENDING_DEMANDS_MAX + 100; i++) {
        char uid[32];
        (void)snprintf(uid, sizeof uid, "uid-%u", i);
        bool there = pending_demands_find_uid(s, uid, &found);
        cr_assert_eq(there, i >= 100, "%u", i);
        present += there;
    }
    cr_assert_eq(present, PENDING_DEMANDS_MAX);
    pending_demands_destroy(s);
}

Test(pending_demands, a_pod_without_uid_is_not_kept)
{
    struct pending_demands *s = pending_demands_create();
    struct demand d = pod(1, 1), found;
    cleanup_free char *why = NULL;
    d.uid[0] = '\0';
    pending_demands_put(s, &d);
    cr_assert_not(pending_demands_find_name(s, "ns1", "pod-1", &found, &why));
    pending_demands_destroy(s);
}

Test(pending_demands, keeps_why_a_pod_was_refused)
{
    struct pending_demands *s = pending_demands_create();
    struct demand d = pod(1, 10), found;
    cleanup_free char *why = NULL;
    pending_demands_put(s, &d);
    pending_demands_refuse(s, &d, "no such role");
    cr_expect_not(pending_demands_find_uid(s, "uid-10", &found),
                  "nothing to bind");
    cr_assert(pending_demands_find_name(s, "ns1", "pod-1", &found, &why));
    cr_expect_str_eq(why, "no such role");
    free(why);
    why = NULL;
    pending_demands_put(s, &d);
    cr_expect(pending_demands_find_uid(s, "uid-10", &found), "mended");
    cr_assert(pending_demands_find_name(s, "ns1", "pod-1", &found, &why));
    cr_expect_null(why);
    pending_demands_refuse(s, &d, "again");
    pending_demands_destroy(s);
}

struct visited {
    unsigned n, refused;
    int64_t since_s;
};

static void visit(void *arg, const struct demand *d, const char *refusal,
                  int64_t since_s)
{
    struct visited *v = arg;
    cr_expect_str_eq(d->name, "pod-1");
    v->n++;
    v->refused += refusal != NULL;
    v->since_s = since_s;
}

Test(pending_demands, tells_of_those_asked_about_lately)
{
    struct pending_demands *s = pending_demands_create();
    struct demand d = pod(1, 10);
    struct visited v = {0};
    clock_set_fake(1000);
    pending_demands_put(s, &d);
    uint64_t version = pending_demands_version(s);
    clock_set_fake(1000 + PENDING_DEMANDS_FRESH_MS - 1);
    pending_demands_put(s, &d);
    cr_expect_eq(pending_demands_version(s), version, "no news");
    clock_set_fake(1000 + PENDING_DEMANDS_FRESH_MS);
    pending_demands_each(s, visit, &v);
    cr_expect_eq(v.n, 1);
    cr_expect_eq(v.refused, 0);
    cr_expect_gt(v.since_s, 0);
    pending_demands_refuse(s, &d, "no such role");
    cr_expect_neq(pending_demands_version(s), version);
    pending_demands_each(s, visit, &v);
    cr_expect_eq(v.refused, 1);
    clock_set_fake(1001 + 2 * PENDING_DEMANDS_FRESH_MS);
    v = (struct visited){0};
    pending_demands_each(s, visit, &v);
    cr_expect_eq(v.n, 0, "nobody asks any more");
    clock_set_fake(-1);
    pending_demands_destroy(s);
}

/* Filter, which puts, does not wait for who reads; and each is told once. */
struct busy_reader {
    struct pending_demands *s;
    unsigned n;
};

static void put_more(void *arg, const struct demand *d, const char *refusal,
                     int64_t since_s)
{
    struct busy_reader *r = arg;
    struct demand fresh = pod(1000 + r->n, 1000 + r->n);
    (void)refusal;
    (void)since_s;
    r->n++;
    pending_demands_put(r->s, d);
    pending_demands_put(r->s, &fresh);
    pending_demands_forget(r->s, d->namespace, d->name);
    pending_demands_put(r->s, d); /* elsewhere */
}

static bool put_and_say_no(const void *ctx, const struct demand *d)
{
    struct busy_reader r = *(const struct busy_reader *)ctx;
    put_more(&r, d, NULL, 0);
    return true;
}

Test(pending_demands, who_puts_does_not_wait_for_who_reads, .timeout = 300)
{
    struct pending_demands *s = pending_demands_create();
    struct busy_reader r = {.s = s};
    struct demand found;
    for (unsigned i = 0; i < 300; i++) {
        struct demand d = pod(i, i);
        if (i % 2)
            pending_demands_put(s, &d);
        else
            pending_demands_refuse(s, &d, "no such role");
    }
    pending_demands_each(s, put_more, &r);
    cr_expect_eq(r.n, 300, "%u", r.n);
    cr_expect(
        pending_demands_find_job(s, "ns1", "", put_and_say_no, &r, &found));
    pending_demands_destroy(s);
}
