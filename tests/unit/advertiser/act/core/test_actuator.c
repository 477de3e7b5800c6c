/* What the actuator takes, refuses and remembers, where no card answers. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "advertiser/act/core/actuator.h"
#include "lib/io/log.h"
#include "tests/lib/tmpdir.h"

#define SPEC(name, uid)                                          \
    "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{"     \
    "\"namespace\":\"lab\",\"name\":\"" name "\",\"uid\":\"" uid \
    "\"},\"spec\":{\"containers\":[{\"name\":\"a\",\"image\":\"i\"}]}}"

static struct actuator *open_at(const char *dir)
{
    const struct actuator_config config = {
        .dir = dir, .cluster = "c", .node = "h", .lost_ms = 400};
    const struct act_place places[] = {
        {.name = "card-0", .endpoint = "unix:///nonexistent/sock"},
        {.name = "card-1"},
        {.name = "host"},
    };
    struct actuator *a = NULL;
    struct error err = {0};
    log_set_level(LOG_ERROR);
    cr_assert_eq(actuator_create(&config, &a, &err), 0, "%s", err.text);
    cr_assert_eq(actuator_set_places(a, places, 3, &err), 0, "%s", err.text);
    return a;
}

static struct act_pod pod_of(const char *name, const char *uid,
                             const char *place, const char *spec)
{
    return (struct act_pod){.owner = "extender",
                            .namespace = "lab",
                            .name = name,
                            .uid = uid,
                            .place = place,
                            .spec = spec,
                            .spec_size = strlen(spec),
                            .sriov_vfs = -1};
}

static void reach(struct actuator *a, const char *name, enum act_state state)
{
    struct act_pod_status v = {0};
    uint64_t version = 0;
    for (int i = 0; i < 2400; i++) { /* two minutes: it hangs */
        cr_assert_eq(actuator_find(a, "lab", name, &v), 0);
        if (v.state == state)
            return;
        version = actuator_wait(a, version, 50);
    }
    cr_assert_fail("%s is %s (%s)", name, act_state_name(v.state), v.reason);
}

Test(actuator, refuses_by_name)
{
    struct actuator *a = open_at(NULL);
    struct error err = {0};
    struct act_pod p = pod_of("x", "u-1", "card-9", SPEC("x", "u-1"));
    cr_assert_eq(actuator_want(a, &p, &err), -ENOENT);
    p.place = "card-1";
    cr_assert_eq(actuator_want(a, &p, &err), -ENOENT, "it may come");
    cr_assert_not_null(strstr(err.text, "endpoint"));
    p.place = "card-0";
    p.uid = "../etc";
    cr_assert_eq(actuator_want(a, &p, &err), -EINVAL);
    p.uid = "u-1";
    p.spec = "{}";
    p.spec_size = 2;
    cr_assert_eq(actuator_want(a, &p, &err), -EINVAL);
    cr_assert_eq(actuator_unwant(a, "u-1", -1, &err), -ENOENT);
    cr_assert_eq(actuator_forget(a, "u-1", &err), -ENOENT);
    actuator_destroy(a);
}

Test(actuator, refuses_what_is_not_allowed)
{
    static const char spec[] =
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{"
        "\"namespace\":\"lab\",\"name\":\"x\",\"uid\":\"u-1\"},\"spec\":{"
        "\"hostPID\":true,\"containers\":[{\"name\":\"a\",\"image\":\"i\"}]}}";
    struct actuator *a = open_at(NULL);
    struct error err = {0};
    struct act_pod p = pod_of("x", "u-1", "card-0", spec);
    cr_assert_eq(actuator_want(a, &p, &err), -EPERM);
    cr_assert_not_null(strstr(err.text, "--allow host-pid"), "%s", err.text);
    p.place = "host"; /* where somebody else runs it */
    cr_assert_eq(actuator_want(a, &p, &err), 0, "%s", err.text);
    actuator_destroy(a);
    const struct actuator_config config = {
        .cluster = "c", .node = "h", .allow = "host-pid"};
    const struct act_place place = {.name = "card-0",
                                    .endpoint = "unix:///nonexistent/sock"};
    cr_assert_eq(actuator_create(&config, &a, &err), 0, "%s", err.text);
    cr_assert_eq(actuator_set_places(a, &place, 1, &err), 0, "%s", err.text);
    p.place = "card-0";
    cr_assert_eq(actuator_want(a, &p, &err), 0, "%s", err.text);
    actuator_destroy(a);
}

Test(actuator, remembers_what_is_wanted_and_drained)
{
    char *dir = tmpdir_create();
    struct actuator *a = open_at(dir);
    struct act_pod p = pod_of("x", "u-1", "card-0", SPEC("x", "u-1"));
    struct act_pod q = pod_of("x", "u-2", "card-0", SPEC("x", "u-2"));
    struct act_place_status places[ACT_PLACES_MAX];
    struct act_pod_status *list = NULL;
    struct error err = {0};
    cr_assert_eq(actuator_want(a, &p, &err), 0, "%s", err.text);
    cr_assert_eq(actuator_want(a, &p, &err), 0, "once more is a success");
    cr_assert_eq(actuator_want(a, &q, &err), -EEXIST);
    cr_assert_eq(actuator_drain(a, "card-0", true, &err), 0);
    actuator_destroy(a);
    a = open_at(dir);
    cr_assert_eq(actuator_list(a, &list), 1);
    cr_assert_str_eq(list->uid, "u-1");
    cr_assert_str_eq(list->owner, "extender");
    free(list);
    cr_assert_eq(actuator_places(a, places), 2, "card-1 is of no use");
    cr_assert(places[0].drained);
    cr_assert_eq(places[0].n_pods, 1);
    q = pod_of("y", "u-2", "card-0", SPEC("y", "u-2"));
    cr_assert_eq(actuator_want(a, &q, &err), -EBUSY);
    cr_assert_eq(actuator_forget(a, "u-1", &err), -EBUSY, "it is not gone");
    actuator_destroy(a);
    tmpdir_remove(dir);
}

Test(actuator, pods_of_a_lost_card_are_stale)
{
    struct actuator *a = open_at(NULL);
    struct act_pod p = pod_of("x", "u-1", "card-0", SPEC("x", "u-1"));
    struct act_pod_status v = {0};
    uint64_t version = 0;
    cr_assert_eq(actuator_want(a, &p, NULL), 0);
    for (int i = 0; i < 3000 && !v.stale; i++) {
        version = actuator_wait(a, version, 50);
        cr_assert_eq(actuator_find(a, "lab", "x", &v), 0);
    }
    cr_assert(v.stale);
    cr_assert_str_eq(v.reason, "CardLost");
    cr_assert_not_null(strstr(v.message, "nonexistent"));
    cr_assert_eq(v.state, ACT_WANTED);
    actuator_destroy(a);
}

Test(actuator, pods_that_somebody_else_runs)
{
    struct actuator *a = open_at(NULL);
    struct act_pod h = pod_of("h", "u-h", "host", SPEC("h", "u-h"));
    struct act_pod k = pod_of("k", "u-k", "host", SPEC("k", "u-k"));
    struct act_pod x = pod_of("x", "u-x", "card-0", SPEC("x", "u-x"));
    const char *const keep[] = {"u-k"};
    struct act_pod_status v;
    h.pair_key = x.pair_key = "lab/j/0";
    h.is_host = true;
    k.held = true;
    cr_assert_eq(actuator_want(a, &x, NULL), 0);
    cr_assert_eq(actuator_want(a, &h, NULL), 0);
    cr_assert_eq(actuator_want(a, &k, NULL), 0);
    (void)actuator_wait(a, actuator_version(a), 200);
    cr_assert_eq(actuator_find(a, "lab", "h", &v), 0);
    cr_assert_eq(v.state, ACT_WANTED, "its xPU pod is not ready");
    cr_assert_eq(actuator_find(a, "lab", "k", &v), 0);
    cr_assert(v.held && v.state == ACT_WANTED);
    cr_assert_eq(actuator_begin(a, "u-k", NULL), 0);
    reach(a, "k", ACT_RUNNING);
    cr_assert_eq(actuator_keep(a, "extender", keep, 1, NULL), 0);
    reach(a, "h", ACT_GONE);
    reach(a, "k", ACT_RUNNING);
    cr_assert_eq(actuator_forget(a, "u-h", NULL), 0);
    cr_assert_eq(actuator_find(a, "lab", "h", &v), -ENOENT);
    cr_assert_eq(actuator_find(a, "lab", "x", &v), 0);
    cr_assert(v.stopping);
    actuator_destroy(a);
}
