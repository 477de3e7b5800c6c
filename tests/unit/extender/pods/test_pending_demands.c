#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "extender/pods/pending_demands.h"
#include "lib/base/mem.h"

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
