/* Biga's own pod on each card: whoever needs it makes it once, and forgets it
 * with its row. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <string.h>

#include "advertiser/act/core/actuator.h"
#include "advertiser/act/core/helper_pod.h"
#include "advertiser/act/core/place.h"
#include "advertiser/act/core/pod_table.h"
#include "advertiser/act/core/state.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "tests/lib/card/actrig.h"
#include "tests/lib/virtual.h"

#define UID ACT_HELPER "card-0"

TestSuite(act_helper, .init = virtual_begin, .fini = virtual_end,
          .timeout = 180);

static struct actrig r;
static atomic_uint n_put;
static atomic_bool meeting, watched, was_there;

/* A pod's turn looks for a helper as long as it holds the lock: when two are
 * seen to have theirs, both have looked. */
static void meet(void)
{
    bool both = false;
    for (int i = 0; i < 60000 && !both; i++) {
        act_lock(r.a);
        both = pod_entry_by_uid(r.a, "x")->busy &&
               pod_entry_by_uid(r.a, "y")->busy;
        act_unlock(r.a);
        if (!both) { /* its place looks now and then who has a turn */
            virtual_take(1);
            (void)poll(NULL, 0, 1);
        }
    }
    cr_expect(both);
}

/* What is written, and when. */
int sqlite3_step(sqlite3_stmt *q)
{
    static int (*real)(sqlite3_stmt *);
    const char *sql = sqlite3_sql(q) ? sqlite3_sql(q) : "";
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "sqlite3_step");
    if (strncmp(sql, "INSERT OR REPLACE INTO pods", 27) == 0) {
        atomic_fetch_add(&n_put, 1);
        if (atomic_exchange(&meeting, false))
            meet();
    }
    if (strncmp(sql, "DELETE FROM pods", 16) == 0 && atomic_load(&watched)) {
        act_lock(r.a);
        atomic_store(&was_there, pod_entry_by_uid(r.a, UID) != NULL);
        act_unlock(r.a);
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
    act_lock(r.a);
    bool has = pod_entry_by_uid(r.a, UID) != NULL;
    act_unlock(r.a);
    return has;
}

static void *begin_x(void *arg)
{
    (void)arg;
    cr_expect_eq(actuator_begin(r.a, "x", NULL), 0);
    return NULL;
}

Test(act_helper, two_that_need_it_make_it_once)
{
    begin();
    for (int i = 0; i < 2; i++) {
        const struct act_pod pod = {
            .name = i ? "y" : "x", .place = "card-0", .held = true};
        cr_assert_eq(actrig_want_as(&r, pod), 0);
    }
    actrig_pass(&r, 1000); /* both are listed, and wait */
    cr_assert_not(has_helper());
    unsigned before = atomic_load(&n_put);
    pthread_t thread;
    atomic_store(&meeting, true); /* the one writes it, the other has looked */
    cr_assert_eq(pthread_create(&thread, NULL, begin_x, NULL), 0);
    cr_assert_eq(actuator_begin(r.a, "y", NULL), 0);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    cr_assert(actrig_reach(&r, "y", ACT_RUNNING));
    cr_assert(actrig_live(&r, 0, UID, 2));
    cr_assert_eq(atomic_load(&n_put), before + 1);
    actrig_fini(&r);
}

Test(act_helper, its_row_goes_before_it)
{
    begin();
    cr_assert_eq(actrig_want(&r, "x", "card-0"), 0);
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    cr_assert(actrig_live(&r, 0, UID, 2));
    cr_assert_eq(actuator_unwant(r.a, "x", 0, NULL), 0);
    cr_assert(actrig_reach(&r, "x", ACT_GONE));
    atomic_store(&watched, true);
    cr_assert_eq(actuator_drain(r.a, "card-0", true, NULL), 0);
    while (has_helper())
        actrig_step(&r, 10);
    cr_assert_not(atomic_load(&watched));
    cr_assert(atomic_load(&was_there), "who needs one meanwhile makes no row");
    /* and comes again */
    cr_assert_eq(actuator_drain(r.a, "card-0", false, NULL), 0);
    cr_assert_eq(actrig_want(&r, "z", "card-0"), 0);
    cr_assert(actrig_reach(&r, "z", ACT_RUNNING));
    cr_assert(actrig_live(&r, 0, UID, 2));
    actrig_fini(&r);
}

/* A service whose files are the helper's to make. */
static void want_with_volume(const char *name)
{
    struct error err = {0};
    cleanup_free char *spec = xasprintf(
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"namespace\":"
        "\"lab\",\"name\":\"%s\",\"uid\":\"%s\"},\"spec\":{"
        "\"restartPolicy\":\"Always\",\"volumes\":[{\"name\":\"e\","
        "\"emptyDir\":{}}],\"containers\":[{\"name\":\"a\",\"image\":\"i\","
        "\"imagePullPolicy\":\"IfNotPresent\",\"volumeMounts\":[{"
        "\"name\":\"e\",\"mountPath\":\"/e\"}]}]}}",
        name, name);
    const struct act_pod pod = {.owner = "extender",
                                .namespace = "lab",
                                .name = name,
                                .uid = name,
                                .place = "card-0",
                                .spec = spec,
                                .spec_size = strlen(spec),
                                .sriov_vfs = -1};
    cr_assert_eq(actuator_want(r.a, &pod, &err), 0, "%s", err.text);
}

/* All sandboxes end, as those of a card that is rebooted. */
static void end_sandboxes(void)
{
    const struct grpc_config to = {.endpoint = r.places[0].endpoint};
    cleanup_with(cri) struct cri *cri = NULL;
    struct cri_sandboxes list = {0};
    struct error err = {0};
    cr_assert_eq(cri_create(&to, &cri, &err), 0);
    cr_assert_eq(
        cri_list_sandboxes(cri, (struct cri_pairs){0}, 5000, &list, &err), 0,
        "%s", err.text);
    for (size_t i = 0; i < list.n; i++)
        (void)cri_stop_sandbox(cri, list.list[i].id, 5000, &err);
    cri_sandboxes_fini(&list);
}

Test(act_helper, a_reboot_of_the_card_fails_no_service)
{
    struct act_pod_status v = {0};
    begin();
    want_with_volume("web");
    cr_assert(actrig_reach(&r, "web", ACT_RUNNING));
    /* the new ones take their time */
    cardserver_hold(r.cards[0], "RunPodSandbox", true);
    /* what is left of both cannot be removed at once */
    cardserver_fail(r.cards[0], "RemovePodSandbox", GRPC_UNKNOWN, 2);
    end_sandboxes();
    actrig_pass(&r, 1000);
    cardserver_hold(r.cards[0], "RunPodSandbox", false);
    while (v.attempt < 2) {
        actrig_step(&r, 10);
        cr_assert_eq(actuator_find(r.a, "lab", "web", &v), 0);
        cr_assert_neq(v.state, ACT_FAILED, "%s: %s", v.reason, v.message);
    }
    cr_assert(actrig_reach(&r, "web", ACT_RUNNING));
    cr_assert(actrig_live(&r, 0, UID, 2));
    actrig_fini(&r);
}

/* Whose image it is now; NULL: there is none. */
static char *image_of_helper(void)
{
    act_lock(r.a);
    const struct pod_entry *e = pod_entry_by_uid(r.a, UID);
    char *image = e && e->spec && !e->intent->stop
                      ? xstrdup(e->spec->containers[0].image)
                      : NULL;
    act_unlock(r.a);
    return image;
}

Test(act_helper, that_of_another_image_is_replaced)
{
    struct act_pod_status v = {0};
    begin();
    want_with_volume("web");
    cr_assert(actrig_reach(&r, "web", ACT_RUNNING));
    actrig_close(&r);
    r.config.helper_image = "helper:2";
    actrig_open(&r);
    cleanup_free char *image = NULL;
    while (!image || strcmp(image, "helper:2") != 0) {
        actrig_step(&r, 10);
        free(image);
        image = image_of_helper();
    }
    cr_assert_str_eq(image, "helper:2");
    cr_assert(actrig_live(&r, 0, UID, 2));
    cr_assert_eq(actuator_find(r.a, "lab", "web", &v), 0);
    cr_assert_eq(v.state, ACT_RUNNING);
    cr_assert_eq(v.attempt, 1, "the pod itself goes on");
    actrig_fini(&r);
}

/* As if it did so for `ms` already; what that says. */
static bool awaits(const char *name, int64_t ms)
{
    act_lock(r.a);
    struct pod_entry *e = pod_entry_by_uid(r.a, name);
    e->await_ms = ms ? clock_ms() - ms : 0;
    bool awaited = helper_awaited(place_find(r.a, "card-0"), e);
    act_unlock(r.a);
    return awaited;
}

Test(act_helper, the_end_of_files_waits_from_when_it_is_due)
{
    begin();
    cardserver_fail(r.cards[0], "StartContainer", GRPC_UNAVAILABLE, 1000);
    want_with_volume("web");
    cr_assert(actrig_live(&r, 0, UID, 1)); /* the helper does not run */
    actrig_pass(&r, 100);
    act_lock(r.a);
    struct pod_entry *e = pod_entry_by_uid(r.a, "web");
    e->intent->stop = true;
    e->intent->attempt = 1;
    e->m.stop_ms = clock_ms() - 3600000; /* what ran took its time */
    act_unlock(r.a);
    cr_expect(awaits("web", 0));
    cr_expect(awaits("web", 50000));
    cr_expect_not(awaits("web", 61000));
    /* and anew when the card was away */
    cardserver_freeze(r.cards[0], true);
    cr_assert(actrig_becomes(&r, 0, ACT_LOST));
    cr_expect_not(awaits("web", 61000));
    cardserver_freeze(r.cards[0], false);
    cr_assert(actrig_becomes(&r, 0, ACT_READY));
    act_lock(r.a);
    int64_t since = e->await_ms;
    act_unlock(r.a);
    cr_expect(since == 0 || clock_ms() - since < 50000);
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
