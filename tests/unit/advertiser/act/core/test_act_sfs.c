/* Scalable functions of pods: made before a pod, told to it, gone with it. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "advertiser/act/core/actuator.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "tests/lib/card/actrig.h"
#include "tests/lib/card/fakedevlink.h"
#include "tests/lib/virtual.h"

static struct actrig r;
static struct fakedevlink d;

static void begin(void)
{
    actrig_init(&r, 1);
    cleanup_free char *dir = xasprintf("%s/devlink", r.dir);
    fakedevlink_init(&d, dir);
    r.config.sysfs = d.sysfs;
    r.config.devlink = d.command;
    (void)snprintf(r.places[0].pci, sizeof r.places[0].pci, FAKEDEVLINK_PCI);
    actrig_open(&r);
}

static void end(void)
{
    actrig_fini(&r);
    fakedevlink_fini(&d);
}

static void want(const char *name, const char *n)
{
    struct error err = {0};
    cleanup_free char *spec = xasprintf(
        "{\"metadata\":{\"namespace\":\"lab\",\"name\":\"%s\",\"uid\":\"%s\","
        "\"annotations\":{\"biga.dev/scalable-functions\":\"%s\"}},\"spec\":{"
        "\"containers\":[{\"name\":\"a\",\"image\":\"i\",\"imagePullPolicy\":"
        "\"IfNotPresent\"}]}}",
        name, name, n);
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

static void take_away(const char *name)
{
    struct error err = {0};
    cr_assert_eq(actuator_unwant(r.a, name, 0, &err), 0, "%s", err.text);
    cr_assert(actrig_reach(&r, name, ACT_GONE));
}

TestSuite(act_sfs, .init = virtual_begin, .fini = virtual_end, .timeout = 180);

Test(act_sfs, come_and_go_with_their_pods)
{
    char value[256];
    begin();
    want("x", "2");
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    cr_expect_eq(fakedevlink_ports(&d), 2);
    cardserver_env(r.cards[0], "BIGA_SCALABLE_FUNCTIONS", value, sizeof value);
    cr_expect_str_eq(value, "mlx5_core.sf.32768,mlx5_core.sf.32769");
    want("y", "0");
    cr_assert(actrig_reach(&r, "y", ACT_RUNNING));
    cardserver_env(r.cards[0], "BIGA_SCALABLE_FUNCTIONS", value, sizeof value);
    cr_expect_str_eq(value, "");
    take_away("y");
    cr_expect_eq(fakedevlink_ports(&d), 2);
    take_away("x");
    cr_expect_eq(fakedevlink_ports(&d), 0);
    end();
}

Test(act_sfs, outlive_the_advertiser)
{
    begin();
    want("x", "2");
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    actrig_close(&r);
    actrig_open(&r);
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    want("y", "1");
    cr_assert(actrig_reach(&r, "y", ACT_RUNNING));
    cr_expect_eq(fakedevlink_ports(&d), 3);
    take_away("x");
    cr_expect_eq(fakedevlink_ports(&d), 1);
    end();
}

Test(act_sfs, that_cannot_be_made_are_the_reason_of_the_pod)
{
    struct act_pod_status v;
    begin();
    fakedevlink_put(&d, "fail",
                    "add kernel answers: Operation not supported\n");
    want("x", "1");
    cr_assert(actrig_reach(&r, "x", ACT_FAILED));
    cr_assert_eq(actuator_find(r.a, "lab", "x", &v), 0);
    cr_expect_str_eq(v.reason, "NoScalableFunctions");
    cr_expect(strstr(v.message, "Operation not supported"), "%s", v.message);
    fakedevlink_put(&d, "fail", NULL);
    want("y", "1");
    cr_assert(actrig_reach(&r, "y", ACT_RUNNING));
    cr_expect_eq(fakedevlink_ports(&d), 1);
    end();
}

/* What could not be removed at its pod's end goes when the next one comes. */
Test(act_sfs, that_were_left_go_later)
{
    begin();
    want("x", "2");
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    fakedevlink_put(&d, "fail", "del kernel answers: Device busy\n");
    take_away("x");
    cr_expect_eq(fakedevlink_ports(&d), 2);
    struct error err = {0};
    cr_assert_eq(actuator_forget(r.a, "x", &err), 0, "%s", err.text);
    fakedevlink_put(&d, "fail", NULL);
    actrig_pass(&r, 60000); /* then it is sure that nothing of it runs */
    want("y", "1");
    cr_assert(actrig_reach(&r, "y", ACT_RUNNING));
    cr_expect_eq(fakedevlink_ports(&d), 1);
    end();
}
