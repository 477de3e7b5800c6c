/* Biga's own pod on each card: whoever needs it makes it once, and forgets it
 * with its row. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "advertiser/act/act_private.h"
#include "tests/lib/actrig.h"

#define UID ACT_HELPER "card-0"

static struct actrig r;
static atomic_uint n_put, put_ms;
static atomic_bool watched, was_there;

/* What is written, and when. */
int sqlite3_step(sqlite3_stmt *q)
{
    static int (*real)(sqlite3_stmt *);
    const char *sql = sqlite3_sql(q) ? sqlite3_sql(q) : "";
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "sqlite3_step");
    if (strncmp(sql, "INSERT OR REPLACE INTO pods", 27) == 0) {
        atomic_fetch_add(&n_put, 1);
        (void)usleep(atomic_load(&put_ms) * 1000);
    }
    if (strncmp(sql, "DELETE FROM pods", 16) == 0 && atomic_load(&watched)) {
        (void)pthread_mutex_lock(&r.a->lock);
        atomic_store(&was_there, entry_by_uid(r.a, UID) != NULL);
        (void)pthread_mutex_unlock(&r.a->lock);
        atomic_store(&watched, false);
    }
    return real(q);
}

static void begin(void)
{
    actrig_init(&r, 1);
    r.config.helper_image = "helper";
    actrig_open(&r);
}

/* A place's name is all that the table is asked for. */
static bool has_helper(void)
{
    (void)pthread_mutex_lock(&r.a->lock);
    bool has = entry_by_uid(r.a, UID) != NULL;
    (void)pthread_mutex_unlock(&r.a->lock);
    return has;
}

Test(act_helper, two_that_need_it_make_it_once, .timeout = 30)
{
    begin();
    for (int i = 0; i < 2; i++) {
        const struct act_pod pod = {
            .name = i ? "y" : "x", .place = "card-0", .held = true};
        cr_assert_eq(actrig_want_as(&r, pod), 0);
    }
    (void)usleep(300000); /* both are listed, and wait */
    cr_assert_not(has_helper());
    unsigned before = atomic_load(&n_put);
    atomic_store(&put_ms, 300); /* the one writes it while the other looks */
    cr_assert_eq(actuator_begin(r.a, "x", NULL), 0);
    cr_assert_eq(actuator_begin(r.a, "y", NULL), 0);
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    cr_assert(actrig_reach(&r, "y", ACT_RUNNING));
    cr_assert(actrig_live(&r, 0, UID, 2));
    cr_assert_eq(atomic_load(&n_put), before + 1);
    actrig_fini(&r);
}

Test(act_helper, its_row_goes_before_it, .timeout = 30)
{
    begin();
    cr_assert_eq(actrig_want(&r, "x", "card-0"), 0);
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    cr_assert(actrig_live(&r, 0, UID, 2));
    cr_assert_eq(actuator_unwant(r.a, "x", 0, NULL), 0);
    cr_assert(actrig_reach(&r, "x", ACT_GONE));
    atomic_store(&watched, true);
    cr_assert_eq(actuator_drain(r.a, "card-0", true, NULL), 0);
    for (int i = 0; i < 1000 && has_helper(); i++)
        (void)usleep(10000);
    cr_assert_not(has_helper());
    cr_assert_not(atomic_load(&watched));
    cr_assert(atomic_load(&was_there), "who needs one meanwhile makes no row");
    /* and comes again */
    cr_assert_eq(actuator_drain(r.a, "card-0", false, NULL), 0);
    cr_assert_eq(actrig_want(&r, "z", "card-0"), 0);
    cr_assert(actrig_reach(&r, "z", ACT_RUNNING));
    cr_assert(actrig_live(&r, 0, UID, 2));
    actrig_fini(&r);
}

Test(act_helper, nobody_else_has_its_uid)
{
    struct error err = {0};
    begin();
    const struct act_pod pod = {.namespace = "lab",
                                .name = "x",
                                .uid = UID,
                                .place = "card-0",
                                .spec = "{}",
                                .spec_size = 2};
    cr_assert_eq(actuator_want(r.a, &pod, &err), -EINVAL);
    cr_assert_not_null(strstr(err.text, UID));
    actrig_fini(&r);
}
