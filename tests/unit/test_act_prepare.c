/* What is done for a pod before its sandbox, on a card that answers. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "advertiser/act/act_private.h"
#include "model/base/mem.h"
#include "model/io/clock.h"
#include "tests/lib/actrig.h"

static struct actrig r;

/* The turn of a pod is another's, who ends it before it is known that one
 * waits for it. */
static atomic_uint n_misses;
static struct entry *other;

int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    static int (*real)(pthread_mutex_t *);
    static _Thread_local bool within;
    struct machine_result result = {0};
    struct error err = {0};
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "pthread_mutex_trylock");
    struct place *p = within || atomic_load(&n_misses) == 0 ? NULL
                                                            : r.a->places[0];
    if (!p || mutex != &p->prep)
        return real(mutex);
    const struct act_place what = p->what;
    within = true;
    deliver_card(p, &what, other, &result, &err);
    within = false;
    atomic_fetch_sub(&n_misses, 1);
    return result.e == 0 ? EBUSY : 0;
}

static char *in_rig(const char *name)
{
    return xasprintf("%s/%s", r.dir, name);
}

/* A hook that writes a line for each time it is run. */
static void hook_add(const char *name, const char *rest)
{
    cleanup_free char *path = xasprintf("%s/%s", r.config.hooks_dir, name);
    FILE *f = fopen(path, "we");
    cr_assert(f, "%s", path);
    (void)fprintf(f, "#!/bin/sh\necho >>%s/%s.runs\n%s\n", r.dir, name, rest);
    cr_assert_eq(fclose(f), 0);
    cr_assert_eq(chmod(path, 0755), 0);
}

static int64_t hook_runs(const char *name)
{
    struct stat st;
    cleanup_free char *path = xasprintf("%s/%s.runs", r.dir, name);
    return stat(path, &st) == 0 ? st.st_size : 0;
}

static void begin(void)
{
    static char hooks[256];
    actrig_init(&r, 1);
    cleanup_free char *dir = in_rig("hooks");
    (void)snprintf(hooks, sizeof hooks, "%s", dir);
    cr_assert_eq(mkdir(hooks, 0755), 0);
    r.config.hooks_dir = hooks;
    (void)snprintf(r.places[0].pci, sizeof r.places[0].pci, "0000:17:00.0");
}

static void want(const char *name, const char *hook)
{
    const struct act_pod pod = {.name = name, .place = "card-0", .hook = hook};
    cr_assert_eq(actrig_want_as(&r, pod), 0);
}

static bool has_reason(const char *name, const char *reason)
{
    struct act_pod_view v;
    for (int i = 0; i < 6000; i++) {
        cr_assert_eq(actuator_find(r.a, "lab", name, &v), 0);
        if (strcmp(v.reason, reason) == 0)
            return true;
        (void)usleep(10000);
    }
    return false;
}

static void wait_health(enum act_health health)
{
    struct act_place_view v[ACT_PLACES_MAX] = {0};
    do {
        (void)usleep(10000);
        cr_assert_eq(actuator_places(r.a, v), 1);
    } while (v[0].health != health);
}

TestSuite(act_prepare, .timeout = 180);

Test(act_prepare, once_more_when_the_card_was_rebooted)
{
    begin();
    hook_add("h", "");
    actrig_open(&r);
    cardserver_fail(r.cards[0], "ImageStatus", GRPC_UNKNOWN, 1);
    want("x", "h");
    cr_assert(has_reason("x", "ImageMissing"));
    cardserver_freeze(r.cards[0], true);
    wait_health(ACT_LOST);
    cardserver_freeze(r.cards[0], false);
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    cr_expect_eq(hook_runs("h"), 2);
    actrig_fini(&r);
}

Test(act_prepare, once_more_when_it_was_rebooted_meanwhile)
{
    begin();
    cleanup_free char *wait =
        xasprintf("while ! [ -e %s/go ]; do sleep 0.05; done", r.dir);
    cleanup_free char *go = in_rig("go");
    hook_add("h", wait);
    actrig_open(&r);
    want("x", "h");
    while (hook_runs("h") == 0)
        (void)usleep(10000);
    cardserver_freeze(r.cards[0], true);
    wait_health(ACT_LOST);
    cardserver_freeze(r.cards[0], false);
    wait_health(ACT_READY);
    cr_assert_eq(mkdir(go, 0755), 0);
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    cr_expect_eq(hook_runs("h"), 2);
    actrig_fini(&r);
}

Test(act_prepare, not_again_when_it_was_there)
{
    begin();
    hook_add("h", "");
    actrig_open(&r);
    cardserver_fail(r.cards[0], "ImageStatus", GRPC_UNKNOWN, 1);
    want("x", "h");
    cr_assert(has_reason("x", "ImageMissing"));
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    cr_expect_eq(hook_runs("h"), 1);
    actrig_fini(&r);
}

Test(act_prepare, a_turn_that_ends_meanwhile_is_noticed)
{
    begin();
    hook_add("h", "");
    actrig_open(&r);
    const struct act_pod held = {
        .name = "other", .place = "card-0", .hook = "h", .held = true};
    cr_assert_eq(actrig_want_as(&r, held), 0);
    wait_health(ACT_READY);
    (void)pthread_mutex_lock(&r.a->lock);
    other = entry_by_uid(r.a, "other");
    (void)pthread_mutex_unlock(&r.a->lock);
    atomic_store(&n_misses, 3); /* each doubles the pause */
    int64_t from = clock_ms();
    want("x", "h");
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    cr_expect_eq(atomic_load(&n_misses), 0);
    cr_expect_eq(hook_runs("h"), 4);
    cr_expect_lt(clock_ms() - from, 3000);
    actrig_fini(&r);
}

static struct cri *client(void)
{
    const struct grpc_config to = {.endpoint = r.places[0].endpoint};
    struct cri *cri = NULL;
    struct error err = {0};
    cr_assert_eq(cri_create(&to, &cri, &err), 0, "%s", err.text);
    return cri;
}

static void end_sandbox(void)
{
    cleanup_with(cri) struct cri *cri = client();
    struct cri_sandboxes list = {0};
    struct error err = {0};
    cr_assert_eq(
        cri_list_sandboxes(cri, (struct cri_pairs){0}, 5000, &list, &err), 0,
        "%s", err.text);
    cr_assert_eq(list.n, 1);
    cr_assert_eq(cri_stop_sandbox(cri, list.list[0].id, 5000, &err), 0);
    cri_sandboxes_fini(&list);
}

static void remove_container(void)
{
    cleanup_with(cri) struct cri *cri = client();
    struct cri_containers list = {0};
    struct error err = {0};
    cr_assert_eq(
        cri_list_containers(cri, (struct cri_pairs){0}, 5000, &list, &err), 0,
        "%s", err.text);
    cr_assert_eq(list.n, 1);
    cr_assert_eq(cri_remove_container(cri, list.list[0].id, 5000, &err), 0);
    cri_containers_fini(&list);
}

static bool gets_stirred(const char *uid, bool stirred)
{
    for (int i = 0; i < 6000; i++) {
        (void)pthread_mutex_lock(&r.a->lock);
        bool is = entry_by_uid(r.a, uid)->stirred;
        (void)pthread_mutex_unlock(&r.a->lock);
        if (is == stirred)
            return true;
        (void)usleep(10000);
    }
    return false;
}

Test(act_prepare, a_card_is_not_listed_in_vain_meanwhile)
{
    begin();
    cleanup_free char *wait =
        xasprintf("while [ -e %s/slow ]; do sleep 0.05; done", r.dir);
    cleanup_free char *slow = in_rig("slow");
    hook_add("h", wait);
    cardserver_events(r.cards[0], CARDSERVER_EVENTS);
    actrig_open(&r);
    want("x", "h");
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    (void)usleep(1500000); /* its events are believed */
    cr_assert_eq(mkdir(slow, 0755), 0);
    cardserver_fail(r.cards[0], "RemovePodSandbox", GRPC_UNKNOWN, 1);
    end_sandbox();
    while (hook_runs("h") < 2)
        (void)usleep(10000);
    remove_container(); /* of what is left */
    cr_assert(gets_stirred("x", true));
    unsigned lists = cardserver_calls(r.cards[0], "ListContainers");
    (void)usleep(2000000);
    lists = cardserver_calls(r.cards[0], "ListContainers") - lists;
    cr_expect_leq(lists, 2, "%u", lists);
    cr_assert_eq(rmdir(slow), 0);
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    cr_expect(gets_stirred("x", false), "it is listed then");
    actrig_fini(&r);
}
