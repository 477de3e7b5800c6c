/* Sets of a card's devices: who has them, and what biga-card says of them. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "advertiser/act/core/actuator.h"
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

static void want(const char *name, const char *sets)
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
                                .sriov_vfs = -1};
    cr_assert_eq(actuator_want(r.a, &pod, &err), 0, "%s", err.text);
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
    expect_reason("s", "DevicesInUse", "lab/x has them");
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

Test(act_devices, what_the_helper_finds_is_given)
{
    begin();
    r.config.helper_image = "biga-card:1";
    cardserver_exec(r.cards[0], 0, "/dev/uio0\n/dev/uio1\n", "");
    actrig_open(&r);
    want("x", "many");
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
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
