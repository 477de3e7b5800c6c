/* Scalable functions of a pod, by a command that stands in for devlink. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "advertiser/act/prep/prep.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/file.h"
#include "tests/lib/card/fakedevlink.h"
#include "tests/lib/tmpdir.h"
#include "tests/lib/virtual.h"

#define CARD "card-0000-17-00"

static struct lab {
    char *top, *state;
    struct fakedevlink d;
    struct prep_config config;
    const char *gone; /* a pod that is not known */
} lab;

static void begin(void)
{
    lab.top = tmpdir_create();
    lab.state = xasprintf("%s/state", lab.top);
    cleanup_free char *dir = xasprintf("%s/devlink", lab.top);
    cr_assert_eq(mkdir(lab.state, 0700), 0);
    fakedevlink_init(&lab.d, dir);
    lab.gone = NULL;
    lab.config = (struct prep_config){.sysfs = lab.d.sysfs,
                                      .dir = lab.state,
                                      .devlink = lab.d.command,
                                      .sf_ms = 60000};
}

static void end(void)
{
    fakedevlink_fini(&lab.d);
    tmpdir_remove(lab.top);
    free(lab.state);
}

TestSuite(prep_sfs, .init = begin, .fini = end, .timeout = 120);

static bool knows(void *ctx, const char *uid)
{
    (void)ctx;
    return !lab.gone || strcmp(uid, lab.gone) != 0;
}

static struct prep_request request_of(const char *uid, int n)
{
    return (struct prep_request){.card = CARD,
                                 .pci = FAKEDEVLINK_PCI,
                                 .namespace = "ns",
                                 .pod = "p",
                                 .uid = uid,
                                 .sfs = n,
                                 .sriov_vfs = -1,
                                 .knows = knows};
}

static struct prep_outcome make(const char *uid, int n)
{
    const struct prep_request request = request_of(uid, n);
    struct prep_outcome o = {0};
    struct error err = {0};
    cr_assert_eq(prep_run(&lab.config, &request, &o, &err), 0, "%s", err.text);
    return o;
}

static void expect_made(const char *uid, int n)
{
    struct prep_outcome o = make(uid, n);
    cr_expect_str_eq(o.reason, "", "%s: %s", o.reason, o.message);
}

static void expect_fault(const char *uid, int n, const char *reason,
                         const char *says, bool again)
{
    struct prep_outcome o = make(uid, n);
    cr_expect_str_eq(o.reason, reason, "%s: %s", o.reason, o.message);
    cr_expect(strstr(o.message, says), "%s", o.message);
    cr_expect_eq(o.again, again);
}

static int take_away(const char *uid, struct error *err)
{
    const struct prep_request request = request_of(uid, 0);
    return prep_sfs_end(&lab.config, &request, err);
}

static void expect_names(const char *uid, const char *expected)
{
    const struct prep_request request = request_of(uid, 0);
    cleanup_str struct str names = STR_INIT(4096);
    struct error err = {0};
    cr_assert_eq(prep_sfs_names(&lab.config, &request, &names, &err), 0, "%s",
                 err.text);
    cr_expect_str_eq(str_text(&names), expected);
}

static void expect_calls(unsigned n)
{
    unsigned found = 0;
    cleanup_free char *calls = fakedevlink_get(&lab.d, "calls");
    for (const char *p = calls; (p = strchr(p, '\n')); p++)
        found++;
    cr_expect_eq(found, n, "%s", calls);
}

static bool is_recorded(void)
{
    cleanup_free char *path = xasprintf("%s/sf-" CARD, lab.state);
    return access(path, F_OK) == 0;
}

Test(prep_sfs, are_made_once_and_go_with_their_pod)
{
    struct error err = {0};
    fakedevlink_put(&lab.d, "ports/32768", "32769 active\n"); /* another's */
    expect_made("a", 2);
    expect_made("b", 1);
    cr_expect_eq(fakedevlink_ports(&lab.d), 4);
    expect_calls(6); /* each is added and made active */
    expect_made("a", 2);
    expect_calls(6);
    /* numbers from 32768 on, but the one that is taken */
    cleanup_free char *first = fakedevlink_get(&lab.d, "ports/32769");
    cleanup_free char *second = fakedevlink_get(&lab.d, "ports/32770");
    cr_expect_str_eq(first, "32768 active\n");
    cr_expect_str_eq(second, "32770 active\n");
    expect_names("a", "mlx5_core.sf.32769,mlx5_core.sf.32770");
    expect_names("b", "mlx5_core.sf.32771");
    expect_names("c", "");
    cr_assert_eq(take_away("a", &err), 0, "%s", err.text);
    cr_expect_eq(fakedevlink_ports(&lab.d), 2);
    cr_assert_eq(take_away("a", &err), 0, "once more is a success");
    cr_assert_eq(take_away("b", &err), 0);
    cr_expect_eq(fakedevlink_ports(&lab.d), 1, "another's goes, too");
    cr_expect(!is_recorded());
}

Test(prep_sfs, have_addresses_of_their_own)
{
    char macs[2][18];
    expect_made("a", 2);
    cleanup_free char *calls = fakedevlink_get(&lab.d, "calls");
    const char *at = calls;
    for (size_t i = 0; i < 2; i++) {
        at = strstr(at, "hw_addr ");
        cr_assert(at, "%s", calls);
        cr_assert_eq(sscanf(at, "hw_addr %17s state active", macs[i]), 1);
        cr_expect_eq(strncmp(macs[i], "02:", 3), 0);
        cr_expect_eq(strlen(macs[i]), 17);
        at++;
    }
    cr_expect_str_neq(macs[0], macs[1]);
}

/* Begun, and then the host or its advertiser went down, at each of its steps. */
Test(prep_sfs, are_found_again_after_a_crash)
{
    static const char record[] = "{\"sfs\":[{\"uid\":\"a\",\"sfnum\":32768}]}";
    static const char *const there[] = {NULL, "32768 inactive\n",
                                        "32768 active\n"};
    static const unsigned calls[] = {2, 1, 0};
    cleanup_free char *path = xasprintf("%s/sf-" CARD, lab.state);
    for (size_t i = 0; i < ARRAY_LEN(there); i++) {
        struct error err = {0};
        cr_assert_eq(
            file_write(path, 0600, record, strlen(record), false, &err), 0);
        fakedevlink_put(&lab.d, "calls", "");
        fakedevlink_put(&lab.d, "ports/32768", there[i]);
        if (i == 2) { /* its device came with that */
            cleanup_free char *dir = xasprintf(
                "%s/bus/pci/devices/" FAKEDEVLINK_PCI "/mlx5_core.sf.32768",
                lab.d.sysfs);
            cr_assert_eq(mkdir(dir, 0755), 0);
            fakedevlink_put(&lab.d,
                            "sys/bus/pci/devices/" FAKEDEVLINK_PCI
                            "/mlx5_core.sf.32768/sfnum",
                            "32768\n");
        }
        expect_made("a", 1);
        expect_calls(calls[i]);
        cr_expect_eq(fakedevlink_ports(&lab.d), 1);
        cr_assert_eq(take_away("a", &err), 0, "%s", err.text);
        cr_expect_eq(fakedevlink_ports(&lab.d), 0);
    }
}

Test(prep_sfs, of_pods_that_nobody_knows_go)
{
    expect_made("a", 2);
    expect_made("b", 1);
    lab.gone = "a";
    expect_made("c", 1);
    cr_expect_eq(fakedevlink_ports(&lab.d), 2);
    expect_names("a", "");
    expect_names("b", "mlx5_core.sf.32770");
}

Test(prep_sfs, say_why_there_are_none)
{
    lab.config.devlink = "/none/devlink";
    expect_fault("a", 1, "NoScalableFunctions", "install devlink", false);
    lab.config.devlink = lab.d.command;
    fakedevlink_put(&lab.d, "fail",
                    "add kernel answers: Operation not supported\n");
    expect_fault("a", 1, "NoScalableFunctions",
                 "kernel answers: Operation not supported: scalable functions "
                 "need",
                 false);
    cr_expect_eq(fakedevlink_ports(&lab.d), 0);
    fakedevlink_put(&lab.d, "fail",
                    "add kernel answers: No space left on device\n");
    expect_fault("a", 1, "SfsTooMany", "PF_TOTAL_SF", false);
}

Test(prep_sfs, are_undone_when_one_fails)
{
    struct error err = {0};
    fakedevlink_put(&lab.d, "fail", "set kernel answers: Invalid argument\n");
    expect_fault("a", 2, "SfsFailed", "Invalid argument", true);
    cr_expect_eq(fakedevlink_ports(&lab.d), 0);
    fakedevlink_put(&lab.d, "fail", "show kernel answers: Broken pipe\n");
    expect_fault("a", 2, "SfsFailed", "Broken pipe", true);
    fakedevlink_put(&lab.d, "fail", NULL);
    expect_made("a", 2);
    cr_expect_eq(fakedevlink_ports(&lab.d), 2);
    fakedevlink_put(&lab.d, "fail", "del kernel answers: Device busy\n");
    cr_expect_lt(take_away("a", &err), 0);
    cr_expect(strstr(err.text, "Device busy"), "%s", err.text);
    cr_expect(is_recorded());
    fakedevlink_put(&lab.d, "fail", NULL);
    lab.gone = "a";
    expect_made("b", 1);
    cr_expect_eq(fakedevlink_ports(&lab.d), 1);
}

/* A second of virtual time goes by with each look. */
static bool keep_and_age(void *ctx)
{
    (void)ctx;
    clock_set_fake(clock_ms() + 1000);
    return true;
}

Test(prep_sfs, whose_device_does_not_appear_are_undone)
{
    struct prep_request request = request_of("a", 2);
    struct prep_outcome o = {0};
    struct error err = {0};
    virtual_begin();
    fakedevlink_put(&lab.d, "mute", "");
    request.keep = keep_and_age;
    cr_assert_eq(prep_run(&lab.config, &request, &o, &err), 0, "%s", err.text);
    virtual_end();
    cr_expect_str_eq(o.reason, "SfsTimedOut", "%s: %s", o.reason, o.message);
    cr_expect(strstr(o.message, "within 60000 ms"), "%s", o.message);
    cr_expect_eq(fakedevlink_ports(&lab.d), 0);
    fakedevlink_put(&lab.d, "mute", NULL);
    expect_made("a", 2);
}

static bool keep_not(void *ctx)
{
    (void)ctx;
    return false;
}

Test(prep_sfs, are_left_to_the_next_life_when_this_one_ends)
{
    struct prep_request request = request_of("a", 1);
    struct prep_outcome o;
    struct error err = {0};
    fakedevlink_put(&lab.d, "mute", "");
    request.keep = keep_not;
    cr_assert_eq(prep_run(&lab.config, &request, &o, &err), -ECANCELED);
    cr_expect_eq(fakedevlink_ports(&lab.d), 1);
    cr_expect(is_recorded());
    fakedevlink_put(&lab.d, "mute", NULL);
    fakedevlink_put(&lab.d, "ports/32768", "32768 inactive\n");
    expect_made("a", 1);
    cr_expect_eq(fakedevlink_ports(&lab.d), 1);
}

Test(prep_sfs, a_command_that_hangs_is_ended)
{
    fakedevlink_put(&lab.d, "hang", "");
    lab.config.sf_ms = 1;
    expect_fault("a", 1, "SfsTimedOut", "was killed after 1 ms", true);
}

Test(prep_sfs, a_record_that_is_damaged_is_told)
{
    static const char *const texts[] = {
        "", "[]", "{\"sfs\":[{\"uid\":\"a\"}]}",
        "{\"sfs\":[{\"uid\":\"a\",\"sfnum\":1}]}"};
    cleanup_free char *path = xasprintf("%s/sf-" CARD, lab.state);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        const struct prep_request request = request_of("a", 1);
        struct prep_outcome o;
        struct error err = {0};
        cr_assert_eq(
            file_write(path, 0600, texts[i], strlen(texts[i]), false, &err), 0);
        cr_expect_lt(prep_run(&lab.config, &request, &o, &err), 0);
        cr_expect(strstr(err.text, "sf-" CARD), "%s", err.text);
        cr_expect_eq(fakedevlink_ports(&lab.d), 0);
    }
}
