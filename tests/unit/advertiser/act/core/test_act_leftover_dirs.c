/* Folders that could not be removed when their pod ended. */
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "advertiser/act/core/actuator.h"
#include "advertiser/act/core/place.h"
#include "advertiser/act/core/pod_table.h"
#include "advertiser/act/core/state.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "tests/lib/card/actrig.h"
#include "tests/lib/virtual.h"

static struct actrig r;

static char *folder(const char *uid)
{
    return xasprintf("%s/pods/%s", r.config.dir, uid);
}

static void begin(int64_t sweep_ms)
{
    actrig_init(&r, 1);
    (void)snprintf(r.places[0].name, sizeof r.places[0].name, "host");
    r.config.sweep_ms = sweep_ms;
    actrig_open(&r);
}

/* A file where its folder was is in the way, however often it is tried. */
static void leave(const char *uid)
{
    struct error err = {0};
    cleanup_free char *path = folder(uid), *aside = xasprintf("%s.was", path);
    cr_assert_eq(actrig_want(&r, uid, "host"), 0);
    cr_assert(actrig_reach(&r, uid, ACT_RUNNING));
    cr_assert_eq(rename(path, aside), 0);
    FILE *f = fopen(path, "we");
    cr_assert(f, "%s", path);
    cr_assert_eq(fclose(f), 0);
    act_lock(r.a);
    pod_entry_by_uid(r.a, uid)->m.refusals = MACHINE_TRIES - 1;
    act_unlock(r.a);
    cr_assert_eq(actuator_unwant(r.a, uid, 0, &err), 0);
    cr_assert(actrig_reach(&r, uid, ACT_GONE));
    struct act_pod_status v;
    cr_assert_eq(actuator_find(r.a, "lab", uid, &v), 0);
    cr_expect_str_eq(v.reason, "FilesLeft");
    cr_expect_eq(access(path, F_OK), 0);
    cr_expect_eq(actuator_forget(r.a, uid, &err), 0, "%s", err.text);
}

/* Until it is unlocked, nothing that was left is tried. */
static struct place *lock_unswept(void)
{
    struct place *p = r.a->places[0];
    act_lock(r.a);
    while (p->sweeping) {
        act_unlock(r.a);
        (void)poll(NULL, 0, 1);
        act_lock(r.a);
    }
    return p;
}

static void put_back(const char *uid)
{
    cleanup_free char *path = folder(uid), *aside = xasprintf("%s.was", path);
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(rename(aside, path), 0);
}

/* The same while the actuator is there: tried between the two, it would count
 * as removed. */
static void clear(const char *uid)
{
    (void)lock_unswept();
    put_back(uid);
    act_unlock(r.a);
}

static bool goes(const char *uid)
{
    cleanup_free char *path = folder(uid);
    for (int i = 0; i < 1000 && access(path, F_OK) == 0; i++)
        actrig_step(&r, 100);
    return access(path, F_OK) != 0;
}

/* As its thread does; that one removes nothing meanwhile. */
static void pretend_to_remove(const char *uid)
{
    struct place *p = lock_unswept();
    p->sweep_ms = INT64_MAX;
    (void)snprintf(p->removing, sizeof p->removing, "%s", uid);
    act_unlock(r.a);
}

static void count(void *ctx, const char *place, const char *uid)
{
    (void)place;
    (void)uid;
    ++*(unsigned *)ctx;
}

/* All have been: the first time after a start is at once. */
static void until_tried(void)
{
    for (bool tried = false; !tried; actrig_step(&r, 100)) {
        act_lock(r.a);
        tried = r.a->places[0]->sweep_ms > clock_ms();
        act_unlock(r.a);
    }
}

/* Of those that are written down, until they are so many. */
static bool are_left(unsigned expected)
{
    unsigned n = expected + 1;
    for (int i = 0; i < 1000 && n != expected; i++) {
        n = 0;
        cr_assert_eq(intents_each_leftover_dir(r.a->intents, count, &n, NULL),
                     0);
        if (n != expected)
            actrig_step(&r, 100);
    }
    return n == expected;
}

TestSuite(act_leftovers, .init = virtual_begin, .fini = virtual_end,
          .timeout = 180);

Test(act_leftovers, are_tried_again_now_and_then)
{
    begin(200);
    leave("x");
    leave("w");
    cr_assert(are_left(2));
    actrig_pass(&r, 500);
    cr_assert(are_left(2));
    clear("w");
    cr_assert(goes("w"));
    cr_assert(are_left(1));
    clear("x");
    cr_assert(goes("x"));
    cr_assert(are_left(0));
    leave("a"); /* it is before these */
    clear("a");
    cr_assert(goes("a"));
    actrig_fini(&r);
}

Test(act_leftovers, are_tried_again_at_each_start)
{
    begin(0);
    leave("x");
    actrig_close(&r);
    actrig_open(&r);
    cr_assert(are_left(1));
    actrig_close(&r);
    put_back("x");
    actrig_open(&r);
    cr_assert(goes("x"));
    cr_assert(are_left(0));
    actrig_fini(&r);
}

/* Whoever gives UIDs may give one again. */
Test(act_leftovers, are_no_more_those_of_a_pod_that_is_there)
{
    begin(100);
    leave("x");
    clear("x");
    cr_assert(goes("x"));
    leave("y");
    pretend_to_remove("z");
    cr_expect_eq(actrig_want(&r, "z", "host"), -EEXIST);
    actrig_fini(&r);

    begin(100);
    leave("y");
    actrig_close(&r);
    r.config.sweep_ms = 0;
    actrig_open(&r);
    cr_assert(are_left(1));
    until_tried();
    clear("y"); /* it is the next pod's */
    cr_assert_eq(actrig_want(&r, "y", "host"), 0);
    cr_assert(actrig_reach(&r, "y", ACT_RUNNING));
    act_lock(r.a);
    r.a->sweep_ms = 100;
    r.a->places[0]->sweep_ms = 1;
    place_wake(r.a->places[0]);
    act_unlock(r.a);
    actrig_pass(&r, 500);
    cleanup_free char *path = folder("y");
    cr_expect_eq(access(path, F_OK), 0, "it is in use");
    struct error err = {0};
    cr_assert_eq(actuator_unwant(r.a, "y", 0, &err), 0);
    cr_assert(goes("y"));
    cr_assert(are_left(0));
    actrig_fini(&r);
}
