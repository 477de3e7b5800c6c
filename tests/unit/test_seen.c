#include <criterion/criterion.h>
#include <stdio.h>

#include "extender/seen.h"
#include "model/base/mem.h"

static struct demand pod(unsigned i, unsigned uid)
{
    struct demand d = {.role = ROLE_HOST, .cards = 1};
    (void)snprintf(d.namespace, sizeof d.namespace, "ns%u", i % 7);
    (void)snprintf(d.name, sizeof d.name, "pod-%u", i);
    (void)snprintf(d.uid, sizeof d.uid, "uid-%u", uid);
    return d;
}

Test(seen, remembers_by_uid_and_by_name)
{
    struct seen *s = seen_create();
    struct demand d = pod(3, 30), found;
    cr_assert_not(seen_find_uid(s, "uid-30", &found));
    seen_put(s, &d);
    cr_assert(seen_find_uid(s, "uid-30", &found));
    cr_assert_str_eq(found.name, "pod-3");
    cr_assert(seen_find_name(s, "ns3", "pod-3", &found));
    cr_assert_not(seen_find_name(s, "ns4", "pod-3", &found));
    d.cards = 4;
    seen_put(s, &d);
    cr_assert(seen_find_uid(s, "uid-30", &found));
    cr_assert_eq(found.cards, 4);
    seen_forget(s, "ns3", "pod-3");
    cr_assert_not(seen_find_uid(s, "uid-30", &found));
    seen_destroy(s);
}

Test(seen, a_new_pod_of_the_same_name_is_the_newest)
{
    struct seen *s = seen_create();
    struct demand a = pod(1, 10), b = pod(1, 11), found;
    seen_put(s, &a);
    seen_put(s, &b);
    cr_assert(seen_find_name(s, "ns1", "pod-1", &found));
    cr_assert_str_eq(found.uid, "uid-11");
    cr_assert(seen_find_uid(s, "uid-10", &found));
    seen_destroy(s);
}

Test(seen, the_oldest_make_room)
{
    struct seen *s = seen_create();
    struct demand found;
    for (unsigned i = 0; i < SEEN_MAX + 100; i++) {
        struct demand d = pod(i, i);
        seen_put(s, &d);
    }
    unsigned present = 0;
    for (unsigned i = 0; i < SEEN_MAX + 100; i++) {
        char uid[32];
        (void)snprintf(uid, sizeof uid, "uid-%u", i);
        bool there = seen_find_uid(s, uid, &found);
        cr_assert_eq(there, i >= 100, "%u", i);
        present += there;
    }
    cr_assert_eq(present, SEEN_MAX);
    seen_destroy(s);
}

Test(seen, a_pod_without_uid_is_not_kept)
{
    struct seen *s = seen_create();
    struct demand d = pod(1, 1), found;
    d.uid[0] = '\0';
    seen_put(s, &d);
    cr_assert_not(seen_find_name(s, "ns1", "pod-1", &found));
    seen_destroy(s);
}
