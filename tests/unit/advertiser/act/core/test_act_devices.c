/* Sets of a card's devices: who has them, and what biga-card says of them. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "advertiser/act/core/actuator.h"
#include "advertiser/act/core/pod_table.h"
#include "advertiser/act/core/state.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "tests/lib/card/actrig.h"
#include "tests/lib/virtual.h"

static struct actrig r;

static void add_set(const char *name, uint32_t share, const char *glob)
{
    struct act_device_set *set = &r.places[0].sets[r.places[0].n_sets++];
    (void)snprintf(set->name, sizeof set->name, "%s", name);
    (void)snprintf(set->globs[set->n_globs++], sizeof set->globs[0], "%s",
                   glob);
    set->share = share;
}

static void begin(void)
{
    actrig_init(&r, 1);
    add_set("rdma", 2, "/dev/uverbs0");
    add_set("snap", 1, "/dev/uio0");
    add_set("many", 1, "/dev/uio*");
}

static void want_after(const char *name, const char *sets, const char *hook)
{
    struct error err = {0};
    cleanup_free char *spec = xasprintf(
        "{\"metadata\":{\"namespace\":\"lab\",\"name\":\"%s\",\"uid\":\"%s\","
        "\"annotations\":{\"biga.dev/devices\":\"%s\"}},\"spec\":{"
        "\"containers\":[{\"name\":\"a\",\"image\":\"i\",\"imagePullPolicy\":"
        "\"IfNotPresent\"}]}}",
        name, name, sets);
    const struct act_pod pod = {.namespace = "lab",
                                .name = name,
                                .uid = name,
                                .place = "card-0",
                                .owner = "extender",
                                .spec = spec,
                                .spec_size = strlen(spec),
                                .hook = hook,
                                .sriov_vfs = -1};
    cr_assert_eq(actuator_want(r.a, &pod, &err), 0, "%s", err.text);
}

static void want(const char *name, const char *sets)
{
    want_after(name, sets, NULL);
}

static void expect_devices(const char *uid, const char *lines)
{
    cleanup_str struct str out = STR_INIT(4096);
    cardserver_given(r.cards[0], uid, &out);
    cr_expect_str_eq(str_text(&out), lines);
}

static void end(const char *name)
{
    struct error err = {0};
    cr_assert_eq(actuator_unwant(r.a, name, 0, &err), 0, "%s", err.text);
}

/* Until that is its reason, with that text in its message. */
static void expect_reason(const char *name, const char *reason,
                          const char *text)
{
    struct act_pod_status v = {0};
    for (int64_t until = clock_ms() + 60000; clock_ms() < until;) {
        cr_assert_eq(actuator_find(r.a, "lab", name, &v), 0);
        if (strcmp(v.reason, reason) == 0 && strstr(v.message, text))
            break;
        actrig_step(&r, 10);
    }
    cr_assert_str_eq(v.reason, reason, "%s: %s", v.reason, v.message);
    cr_expect(strstr(v.message, text), "%s", v.message);
}

TestSuite(act_devices, .init = virtual_begin, .fini = virtual_end,
          .timeout = 180);

Test(act_devices, no_more_pods_have_a_set_than_may)
{
    begin();
    actrig_open(&r);
    want("x", "rdma,snap");
    want("y", "rdma");
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    cr_assert(actrig_reach(&r, "y", ACT_RUNNING));
    want("z", "rdma");
    want("s", "snap");
    expect_reason("z", "DevicesInUse", "at most 2 pods");
    expect_reason("z", "DevicesInUse", "lab/x");
    expect_reason("s", "DevicesInUse", "at most 1 pod at");
    end("y");
    cr_assert(actrig_reach(&r, "z", ACT_RUNNING));
    expect_reason("s", "DevicesInUse", "held by lab/x");
    end("x");
    cr_assert(actrig_reach(&r, "s", ACT_RUNNING));
    actrig_fini(&r);
}

Test(act_devices, pods_of_an_earlier_run_have_theirs)
{
    begin();
    actrig_open(&r);
    want("x", "snap");
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    actrig_close(&r);
    actrig_open(&r);
    want("y", "snap");
    expect_reason("y", "DevicesInUse", "lab/x");
    end("x");
    cr_assert(actrig_reach(&r, "y", ACT_RUNNING));
    actrig_fini(&r);
}

Test(act_devices, a_set_that_the_card_does_not_have)
{
    begin();
    actrig_open(&r);
    want("x", "rdma,none");
    cr_assert(actrig_reach(&r, "x", ACT_FAILED));
    expect_reason("x", "NoDevices",
                  "card-0 has no devices that are called "
                  "\"none\"");
    actrig_fini(&r);
}

Test(act_devices, patterns_want_a_helper)
{
    begin();
    actrig_open(&r);
    want("x", "many");
    cr_assert(actrig_reach(&r, "x", ACT_FAILED));
    expect_reason("x", "HelperMissing", "/dev/uio*");
    actrig_fini(&r);
}

/* What the helper of the card answers, and what becomes of the pod. */
static void ask_helper(const char *answer, const char *reason, const char *text)
{
    begin();
    r.config.helper_image = "biga-card:1";
    cardserver_exec(r.cards[0], 0, answer, "");
    actrig_open(&r);
    want("x", "many");
    expect_reason("x", reason, text);
    actrig_fini(&r);
}

/* A card whose helper finds two. */
static void begin_helped(void)
{
    begin();
    r.config.helper_image = "biga-card:1";
    cardserver_exec(r.cards[0], 0, "/dev/uio0\n/dev/uio1\n", "");
}

Test(act_devices, what_the_helper_finds_is_given)
{
    begin_helped();
    actrig_open(&r);
    want("x", "many,rdma");
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    expect_devices("x", "/dev/uio0 rw\n/dev/uio1 rw\n/dev/uverbs0 rw\n");
    want("y", "snap");
    cr_assert(actrig_reach(&r, "y", ACT_RUNNING));
    expect_devices("y", "/dev/uio0 rw\n");
    want("z", "");
    cr_assert(actrig_reach(&r, "z", ACT_RUNNING));
    expect_devices("z", "");
    actrig_fini(&r);
}

/* A container that ended is made anew, with the devices that there are then. */
Test(act_devices, a_container_that_comes_back_waits_for_its_devices)
{
    begin_helped();
    actrig_open(&r);
    want("x", "many");
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    cardserver_exec(r.cards[0], 0, "", "");
    cr_assert_eq(cardserver_exit(r.cards[0], "x"), 1);
    expect_reason("x", "NoDevices", "none of the devices \"many\"");
    cardserver_exec(r.cards[0], 0, "/dev/uio7\n", "");
    cr_assert(actrig_live(&r, 0, "x", 2));
    expect_devices("x", "/dev/uio7 rw\n");
    /* the helper is gone, as after a reboot of the card */
    cardserver_fail(r.cards[0], "ExecSync", GRPC_NOT_FOUND, 1);
    cr_assert_eq(cardserver_exit(r.cards[0], "x"), 1);
    expect_reason("x", "WaitsForHelper", "not run on card-0 yet");
    cr_assert(actrig_live(&r, 0, "x", 2));
    actrig_fini(&r);
}

Test(act_devices, a_card_that_is_silent_says_nothing_of_devices)
{
    begin_helped();
    actrig_open(&r);
    cardserver_fail(r.cards[0], "ExecSync", GRPC_UNAVAILABLE, 1);
    want("x", "many");
    expect_reason("x", "CardSilent", "");
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    actrig_fini(&r);
}

Test(act_devices, a_helper_that_has_failed_is_not_waited_for)
{
    begin_helped();
    cardserver_fail(r.cards[0], "RunPodSandbox", GRPC_UNKNOWN, 1000);
    actrig_open(&r);
    want("x", "many");
    cr_assert(actrig_reach(&r, "x", ACT_FAILED));
    expect_reason("x", "HelperMissing", "import there the image biga-card:1");
    actrig_fini(&r);
}

/* A hook may make what is looked for. */
Test(act_devices, they_are_looked_for_once_the_card_was_prepared)
{
    begin_helped();
    cardserver_exec(r.cards[0], 0, "", "");
    r.config.hooks_dir = r.dir;
    (void)snprintf(r.places[0].pci, sizeof r.places[0].pci, "0000:17:00.0");
    cleanup_free char *path = xasprintf("%s/h", r.dir);
    FILE *hook = fopen(path, "we");
    cr_assert(hook);
    (void)fputs("#!/bin/sh\nexit 3\n", hook);
    cr_assert_eq(fclose(hook), 0);
    cr_assert_eq(chmod(path, 0755), 0);
    actrig_open(&r);
    want_after("x", "many", "h");
    expect_reason("x", "HookFailed", "");
    actrig_fini(&r);
}

/* One of an earlier version, which cannot be read any more. */
Test(act_devices, a_pod_that_cannot_be_read_may_have_any)
{
    begin();
    actrig_open(&r);
    want("x", "rdma");
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    act_lock(r.a);
    struct pod_entry *x = pod_entry_by_uid(r.a, "x");
    struct podspec *spec = steal(&x->spec);
    act_unlock(r.a);
    want("y", "rdma,snap");
    expect_reason("y", "DevicesInUse", "held by lab/x");
    end("x");
    cr_assert(actrig_reach(&r, "y", ACT_RUNNING));
    podspec_destroy(spec);
    actrig_fini(&r);
}

Test(act_devices, the_helper_finds_none)
{
    ask_helper("", "NoDevices", "(/dev/uio*)");
}

Test(act_devices, an_answer_of_no_paths_is_not_believed)
{
    ask_helper("/etc/shadow\n", "NoDevices", "\"/etc/shadow\", which is no");
}

Test(act_devices, nor_one_that_leaves_its_folder)
{
    ask_helper("/dev/../etc/shadow\n", "NoDevices", "which is no path");
}

Test(act_devices, nor_one_that_is_cut)
{
    ask_helper("/dev/uio0\n/dev/u", "NoDevices", "\"/dev/u\", which is no");
}
