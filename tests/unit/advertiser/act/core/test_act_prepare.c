/* What is done for a pod before its sandbox, on a card that answers. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "advertiser/act/card/labels.h"
#include "advertiser/act/core/actuator.h"
#include "advertiser/act/core/card_setup.h"
#include "advertiser/act/core/pod_table.h"
#include "advertiser/act/core/state.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "tests/lib/card/actrig.h"
#include "tests/lib/virtual.h"

static struct actrig r;

/* The turn of a pod is another's, who ends it before it is known that one
 * waits for it. */
static atomic_uint n_misses;
static struct pod_entry *other;

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
    const struct act_place what = p->desc;
    within = true;
    card_setup_run(p, &what, other, &result, &err);
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
    struct act_pod_status v;
    for (int64_t end = clock_ms() + 60000; clock_ms() < end;) {
        cr_assert_eq(actuator_find(r.a, "lab", name, &v), 0);
        if (strcmp(v.reason, reason) == 0)
            return true;
        actrig_step(&r, 10);
    }
    return false;
}

static void wait_health(enum act_health health)
{
    cr_assert(actrig_becomes(&r, 0, health));
}

/* From then on time does not wait for the thread that runs it. */
static void until_runs(const char *name, int64_t n)
{
    r.n_away = 1;
    while (hook_runs(name) < n) {
        actrig_step(&r, 10);
        (void)poll(NULL, 0, 1);
    }
}

TestSuite(act_prepare, .init = virtual_begin, .fini = virtual_end,
          .timeout = 180);

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
    until_runs("h", 1);
    cardserver_freeze(r.cards[0], true);
    wait_health(ACT_LOST);
    cardserver_freeze(r.cards[0], false);
    wait_health(ACT_READY);
    r.n_away = 0;
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
    act_lock(r.a);
    other = pod_entry_by_uid(r.a, "other");
    act_unlock(r.a);
    atomic_store(&n_misses, 3); /* each doubles the pause */
    want("x", "h");
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    cr_expect_eq(atomic_load(&n_misses), 0);
    cr_expect_eq(hook_runs("h"), 4);
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

static void end_sandbox(const char *uid)
{
    const struct cri_pair label = {ACT_LABEL_UID, uid};
    cleanup_with(cri) struct cri *cri = client();
    struct cri_sandboxes list = {0};
    struct error err = {0};
    cr_assert_eq(cri_list_sandboxes(cri, (struct cri_pairs){&label, 1}, 5000,
                                    &list, &err),
                 0, "%s", err.text);
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
        act_lock(r.a);
        bool is = pod_entry_by_uid(r.a, uid)->stirred;
        act_unlock(r.a);
        if (is == stirred)
            return true;
        actrig_step(&r, 10);
        (void)poll(NULL, 0, 10); /* the event comes beside time */
    }
    return false;
}

/* Its events are, and it has begun to tell them. */
static void until_believed(void)
{
    bool live = false;
    while (!live) {
        actrig_step(&r, 100);
        (void)poll(NULL, 0, 1);
        act_lock(r.a);
        live = r.a->places[0]->events.live;
        act_unlock(r.a);
    }
    while (cardserver_calls(r.cards[0], "GetContainerEvents") == 0)
        (void)poll(NULL, 0, 1);
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
    until_believed();
    cr_assert_eq(mkdir(slow, 0755), 0);
    cardserver_fail(r.cards[0], "RemovePodSandbox", GRPC_UNKNOWN, 1);
    end_sandbox("x");
    until_runs("h", 2);
    remove_container(); /* of what is left */
    cr_assert(gets_stirred("x", true));
    unsigned lists = cardserver_calls(r.cards[0], "ListContainers");
    actrig_pass(&r, 2000);
    lists = cardserver_calls(r.cards[0], "ListContainers") - lists;
    cr_expect_leq(lists, 2, "%u", lists);
    r.n_away = 0;
    cr_assert_eq(rmdir(slow), 0);
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    cr_expect(gets_stirred("x", false), "it is listed then");
    actrig_fini(&r);
}

/* --- virtual functions ---------------------------------------------------- */

static void put(const char *name, const char *text)
{
    cleanup_free char *path = in_rig(name);
    FILE *f = fopen(path, "we");
    cr_assert(f, "%s", path);
    (void)fputs(text, f);
    cr_assert_eq(fclose(f), 0);
}

/* The card has two, and may have nine. */
static void begin_functions(void)
{
    static char top[256];
    static const char *const dirs[] = {"bus", "bus/pci", "bus/pci/devices",
                                       "bus/pci/devices/0000:17:00.0"};
    begin();
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
        cleanup_free char *path = in_rig(dirs[i]);
        cr_assert_eq(mkdir(path, 0755), 0);
    }
    put("bus/pci/devices/0000:17:00.0/sriov_totalvfs", "9\n");
    put("bus/pci/devices/0000:17:00.0/sriov_numvfs", "2\n");
    (void)snprintf(top, sizeof top, "%s", r.dir);
    r.config.sysfs = top;
}

/* The pod asks for others, and is refused them as often as makes it wait for
 * the longest time. */
static void want_in_vain(const char *name)
{
    const struct act_pod pod = {
        .name = name, .place = "card-0", .sriov_vfs = 8, .held = true};
    struct error err = {0};
    cr_assert_eq(actrig_want_as(&r, pod), 0);
    act_lock(r.a);
    pod_entry_by_uid(r.a, name)->m.failures = 20;
    act_unlock(r.a);
    cr_assert_eq(actuator_begin(r.a, name, &err), 0, "%s", err.text);
    cr_assert(has_reason(name, "VfsInUse"));
}

static int64_t waits_ms(const char *name)
{
    act_lock(r.a);
    int64_t ms = pod_entry_by_uid(r.a, name)->m.retry_ms - clock_ms();
    act_unlock(r.a);
    return ms;
}

Test(act_prepare, who_waits_for_functions_is_woken_by_an_end)
{
    struct error err = {0};
    begin_functions();
    actrig_open(&r);
    want("x", "");
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    want_in_vain("y");
    cr_assert_gt(waits_ms("y"), 30000);
    cr_assert_eq(actuator_unwant(r.a, "x", 0, &err), 0);
    cr_assert(actrig_reach(&r, "y", ACT_RUNNING));
    actrig_fini(&r);
}

Test(act_prepare, who_waits_for_functions_is_woken_by_a_failure)
{
    begin_functions();
    actrig_open(&r);
    want("x", "");
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    want_in_vain("y");
    act_lock(r.a);
    struct pod_entry *x = pod_entry_by_uid(r.a, "x");
    x->spec->restart = PODSPEC_RESTART_NEVER;
    act_unlock(r.a);
    end_sandbox("x");
    cr_assert(actrig_reach(&r, "x", ACT_FAILED));
    cr_assert(actrig_reach(&r, "y", ACT_RUNNING));
    actrig_fini(&r);
}

Test(act_prepare, who_waits_for_functions_is_woken_by_an_orphans_end)
{
    begin_functions();
    r.config.orphan_grace_ms = 15000; /* so that it ends after the refusal */
    actrig_stray(&r, 0, "nobody");
    actrig_open(&r);
    wait_health(ACT_READY);
    want_in_vain("y");
    cr_assert_gt(waits_ms("y"), 30000);
    cr_assert(actrig_live(&r, 0, "nobody", 0));
    cr_assert(actrig_reach(&r, "y", ACT_RUNNING));
    actrig_fini(&r);
}

/* Both ran with two, of which there are four now. */
Test(act_prepare, two_that_wait_for_functions_do_not_wake_each_other)
{
    static const char *const names[] = {"y", "z"};
    begin_functions();
    actrig_open(&r);
    want("x", "");
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const struct act_pod pod = {
            .name = names[i], .place = "card-0", .sriov_vfs = 2};
        cr_assert_eq(actrig_want_as(&r, pod), 0);
        cr_assert(actrig_reach(&r, names[i], ACT_RUNNING));
    }
    put("bus/pci/devices/0000:17:00.0/sriov_numvfs", "4\n");
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        end_sandbox(names[i]);
        cr_assert(has_reason(names[i], "VfsInUse"));
    }
    unsigned lists = cardserver_calls(r.cards[0], "ListContainers");
    actrig_pass(&r, 1000);
    lists = cardserver_calls(r.cards[0], "ListContainers") - lists;
    cr_expect_lt(lists, 20, "%u", lists);
    actrig_fini(&r);
}
