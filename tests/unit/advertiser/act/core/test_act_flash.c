/* A card is flashed: whatever comes of it, it has a reason, and no pod comes
 * to a card that may not be as it was. */
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "advertiser/act/core/actuator.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/file.h"
#include "tests/lib/card/actrig.h"
#include "tests/lib/virtual.h"

#define CARD "card-0"
#define OS "bf-bundle-2.9.0_prod"

static struct actrig r;
static char *image;

static char *in_rig(const char *name)
{
    return xasprintf("%s/%s", r.dir, name);
}

static bool exists(const char *name)
{
    cleanup_free char *path = in_rig(name);
    return access(path, F_OK) == 0;
}

static void make(const char *name)
{
    cleanup_free char *path = in_rig(name);
    struct error err = {0};
    cr_assert_eq(file_write(path, 0600, "", 0, false, &err), 0, "%s", err.text);
}

static void put_image(const char *text)
{
    cleanup_free char *command =
        xasprintf("cd %s && printf image > " OS ".bfb && sha256sum " OS
                  ".bfb > " OS ".bfb.sha256 && printf '%%s' '%s' > " OS ".bfb",
                  r.dir, text);
    cr_assert_eq(system(command), 0); /* NOLINT: a test's own text */
}

/* The rig is in $L; it tells that it began, by "begun". */
static void put_hook(const char *script)
{
    cleanup_free char *path = xasprintf("%s/flash-bfb", r.config.hooks_dir);
    FILE *f = fopen(path, "we");
    cr_assert(f, "%s", path);
    (void)fprintf(f, "#!/bin/sh\nL=%s\necho $$ >$L/pid\n: >$L/begun\n%s\n",
                  r.dir, script);
    cr_assert_eq(fclose(f), 0);
    cr_assert_eq(chmod(path, 0755), 0);
}

#define UNTIL_GO "while ! [ -e $L/go ]; do sleep 0.01; done\n"
#define BOOTS "echo progress 100 booted; echo version " OS "\n"

static void begin(void)
{
    static char hooks[256];
    actrig_init(&r, 1);
    cleanup_free char *dir = in_rig("hooks");
    (void)snprintf(hooks, sizeof hooks, "%s", dir);
    cr_assert_eq(mkdir(hooks, 0755), 0);
    r.config.hooks_dir = hooks;
    (void)snprintf(r.places[0].pci, sizeof r.places[0].pci, "0000:17:00.0");
    image = in_rig(OS ".bfb");
    put_image("image");
    put_hook(BOOTS);
    actrig_open(&r);
    cr_assert(actrig_becomes(&r, 0, ACT_READY));
}

static void end(void)
{
    actrig_fini(&r);
    free(image);
}

static int flash_as(struct act_flash flash, struct error *err)
{
    flash.bfb = flash.bfb ? flash.bfb : image;
    flash.sha256 = flash.sha256 ? flash.sha256 : "";
    flash.version = flash.version ? flash.version : "";
    flash.timeout_ms = flash.timeout_ms ? flash.timeout_ms : 30000;
    return actuator_flash(r.a, CARD, &flash, err);
}

static void flash(void)
{
    struct error err = {0};
    cr_assert_eq(flash_as((struct act_flash){0}, &err), 0, "%s", err.text);
}

static struct flasher_view view(void)
{
    return actrig_place(&r, 0).flash;
}

/* A process does the work: in real time. */
static struct flasher_view wait_end(void)
{
    while (view().state == FLASHER_RUNNING)
        (void)poll(NULL, 0, 1);
    return view();
}

static void wait_for(const char *name)
{
    while (!exists(name))
        (void)poll(NULL, 0, 1);
}

/* No pod comes, and what others see says why. */
static void expect_out(const char *reason)
{
    const struct act_pod pod = {.name = "refused", .place = CARD};
    struct act_place_status v = actrig_place(&r, 0);
    cr_expect(v.health == ACT_DRAINED || v.health == ACT_LOST);
    cr_expect(v.drained);
    cr_expect(strstr(v.reason, reason), "%s", v.reason);
    cr_expect_eq(actrig_want_as(&r, pod), -EBUSY);
}

static void expect_serves(void)
{
    struct act_place_status v = actrig_place(&r, 0);
    cr_expect(!v.drained);
    cr_assert(actrig_becomes(&r, 0, ACT_READY));
    cr_assert_eq(actrig_want(&r, "x", CARD), 0);
    cr_expect(actrig_reach(&r, "x", ACT_RUNNING));
}

static void expect_failed(const char *reason, const char *says)
{
    struct flasher_view v = wait_end();
    cr_expect_eq(v.state, FLASHER_FAILED, "%d: %s", v.state, v.message);
    cr_expect_str_eq(v.reason, reason, "%s: %s", v.reason, v.message);
    cr_expect(strstr(v.message, says), "%s", v.message);
    expect_out(reason);
}

static void expect_refused(const char *reason, const char *says)
{
    struct flasher_view v = wait_end();
    cr_expect_eq(v.state, FLASHER_REFUSED, "%d: %s", v.state, v.message);
    cr_expect_str_eq(v.reason, reason, "%s: %s", v.reason, v.message);
    cr_expect(strstr(v.message, says), "%s", v.message);
    cr_expect(!exists("begun"), "the card was touched");
    cr_expect(!exists("state/flash-" CARD));
    expect_serves();
}

/* As after a restart of the advertiser. */
static void open_again(void)
{
    actrig_close(&r);
    actrig_open(&r);
}

static void drain(bool drained)
{
    struct error err = {0};
    cr_assert_eq(actuator_drain(r.a, CARD, drained, &err), 0, "%s", err.text);
}

TestSuite(act_flash, .init = virtual_begin, .fini = virtual_end,
          .timeout = 180);

Test(act_flash, is_told_while_it_runs_and_ends_well)
{
    begin();
    put_hook("echo progress 45 writing the image\n"
             "env >$L/env\n" UNTIL_GO BOOTS);
    flash();
    while (view().percent != 45)
        (void)poll(NULL, 0, 1);
    cr_expect_eq(view().state, FLASHER_RUNNING);
    cr_expect_str_eq(view().phase, "writing the image");
    expect_out("it is being flashed: writing the image, 45 %");
    cr_expect(exists("state/flash-" CARD), "it is not written down");
    make("go");
    struct flasher_view v = wait_end();
    cr_expect_eq(v.state, FLASHER_DONE, "%s: %s", v.reason, v.message);
    cr_expect(strstr(v.message, OS), "%s", v.message);
    cr_expect(!exists("state/flash-" CARD));
    expect_serves();
    cleanup_free char *path = in_rig("env"), *env = NULL;
    size_t size;
    cr_assert_eq(file_read(path, 65536, &env, &size, NULL), 0);
    cleanup_free char *bfb = xasprintf("\nBIGA_FLASH_BFB=%s\n", image);
    cr_expect(strstr(env, bfb), "%s", env);
    cr_expect(strstr(env, "BIGA_CARD=" CARD "\n"), "%s", env);
    end();
}

Test(act_flash, its_hook_is_told_where_the_card_answers)
{
    static const char *const endpoints[][2] = {
        {"tcp://192.0.2.7:7443", "192.0.2.7"},
        {"tcp://[fd00::7]:7443", "fd00::7"},
        {"tcp://card.example:7443", "card.example"},
    };
    begin();
    cleanup_free char *path = in_rig("address");
    put_hook("echo $BIGA_CARD_ADDRESS >$L/address\n" BOOTS);
    for (size_t i = 0; i < ARRAY_LEN(endpoints); i++) {
        struct act_place *p = &r.places[0];
        struct error err = {0};
        cleanup_free char *found = NULL;
        cleanup_free char *wanted = xasprintf("%s\n", endpoints[i][1]);
        size_t size;
        (void)snprintf(p->endpoint, sizeof p->endpoint, "%s", endpoints[i][0]);
        cr_assert_eq(actuator_set_places(r.a, r.places, 1, &err), 0);
        flash();
        cr_expect_eq(wait_end().state, FLASHER_DONE);
        cr_assert_eq(file_read(path, 1024, &found, &size, NULL), 0);
        cr_expect_str_eq(found, wanted);
    }
    end();
}

Test(act_flash, half_an_image_is_not_begun)
{
    begin();
    put_image("ima");
    flash();
    expect_refused("FlashImageBad", "its SHA-256 is");
    end();
}

/* After it was judged: in place, or by another of that name. */
Test(act_flash, an_image_that_changes_meanwhile_keeps_the_card_out)
{
    static const char *const changes[] = {
        "printf more >>$BIGA_FLASH_BFB\n",
        "cp -p $BIGA_FLASH_BFB $L/new\nmv $L/new $BIGA_FLASH_BFB\n",
    };
    begin();
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        cleanup_free char *hook = xasprintf("%s%s", changes[i], BOOTS);
        put_image("image");
        put_hook(hook);
        flash();
        expect_failed("FlashImageChanged", "flash it again");
    }
    put_image("image");
    put_hook(BOOTS);
    flash();
    cr_expect_eq(wait_end().state, FLASHER_DONE);
    expect_serves();
    end();
}

Test(act_flash, an_image_that_cannot_be_judged_is_not_begun)
{
    struct error err = {0};
    begin();
    cleanup_free char *sum = in_rig(OS ".bfb.sha256"), *none = in_rig("none");
    const char *const other = "0123456789abcdef0123456789abcdef"
                              "0123456789abcdef0123456789abcdef";
    cr_assert_eq(flash_as((struct act_flash){.bfb = none}, &err), 0);
    expect_refused("FlashImageMissing", none);
    cr_assert_eq(actuator_end(r.a, "x", 0, &err), 0);
    cr_assert(actrig_reach(&r, "x", ACT_GONE));
    cr_assert_eq(actuator_forget(r.a, "x", &err), 0);
    cr_assert_eq(unlink(sum), 0);
    flash();
    struct flasher_view v = wait_end();
    cr_expect_str_eq(v.reason, "FlashImageBad");
    cr_expect(strstr(v.message, "--sha256"), "%s", v.message);
    cr_assert_eq(flash_as((struct act_flash){.sha256 = other}, &err), 0);
    v = wait_end();
    cr_expect_eq(v.state, FLASHER_REFUSED);
    cr_expect(strstr(v.message, other), "%s", v.message);
    put_image("");
    flash();
    cr_expect(strstr(wait_end().message, "has 0 bytes"), "%s", view().message);
    cr_expect(!exists("begun"));
    expect_serves();
    end();
}

Test(act_flash, without_its_hook_is_not_begun)
{
    begin();
    cleanup_free char *hook = in_rig("hooks/flash-bfb");
    cr_assert_eq(chmod(hook, 0777), 0);
    flash();
    cr_expect_str_eq(wait_end().reason, "HookRefused");
    cr_assert_eq(unlink(hook), 0);
    flash();
    expect_refused("HookMissing", "flash-bfb");
    end();
}

Test(act_flash, that_breaks_off_leaves_the_card_out_until_it_is_flashed)
{
    begin();
    put_hook("echo progress 45 writing the image\n"
             "echo rshim0: broken pipe >&2; exit 3");
    flash();
    expect_failed("FlashFailed", "at 45 % (writing the image)");
    cr_expect(strstr(view().message, "rshim0: broken pipe"));
    open_again();
    expect_failed("FlashFailed", "rshim0: broken pipe");
    /* a refusal changes nothing of that */
    put_image("ima");
    flash();
    expect_failed("FlashFailed", "its SHA-256 is");
    open_again();
    expect_failed("FlashFailed", "rshim0: broken pipe");
    put_image("image");
    put_hook(BOOTS);
    flash();
    cr_expect_eq(wait_end().state, FLASHER_DONE);
    expect_serves();
    end();
}

Test(act_flash, that_takes_too_long_is_ended)
{
    begin();
    put_hook("echo progress 7 waiting for boot\n" UNTIL_GO BOOTS);
    flash();
    while (view().percent != 7)
        (void)poll(NULL, 0, 1);
    actrig_pass(&r, 29000);
    cr_expect_eq(view().state, FLASHER_RUNNING);
    actrig_pass(&r, 2000);
    expect_failed("FlashTimedOut", "at 7 % (waiting for boot)");
    end();
}

Test(act_flash, another_version_that_booted_is_a_failure)
{
    struct error err = {0};
    begin();
    put_hook("echo version bf-bundle-2.8.0_prod");
    flash();
    expect_failed("FlashWrongVersion", "bf-bundle-2.8.0_prod booted, and " OS);
    put_hook("echo all is well");
    flash();
    expect_failed("FlashUnverified", "did not say what booted");
    put_hook("echo version 7");
    cr_assert_eq(flash_as((struct act_flash){.version = "7"}, &err), 0);
    cr_expect_eq(wait_end().state, FLASHER_DONE);
    expect_serves();
    end();
}

/* What an earlier hook said is not what booted now. */
Test(act_flash, a_version_is_that_of_its_own_hook)
{
    begin();
    flash();
    cr_expect_eq(wait_end().state, FLASHER_DONE);
    put_hook("");
    flash();
    expect_failed("FlashUnverified", "");
    end();
}

Test(act_flash, is_interrupted_by_the_end_of_the_advertiser)
{
    struct error err = {0};
    begin();
    put_hook("echo progress 45 writing\n" UNTIL_GO BOOTS ": >$L/over");
    flash();
    wait_for("begun");
    open_again();
    expect_failed("FlashInterrupted", image);
    make("go"); /* the hook was left to itself */
    wait_for("over");
    expect_out("FlashInterrupted");
    drain(false); /* the operator knows that it is well */
    cr_expect_eq(view().state, FLASHER_NONE);
    expect_serves();
    open_again();
    cr_expect_eq(view().state, FLASHER_NONE);
    cr_expect(!actrig_place(&r, 0).drained);
    cr_expect_eq(actuator_drain(r.a, "none", false, &err), -ENOENT);
    end();
}

Test(act_flash, is_interrupted_by_a_reboot_of_the_host)
{
    begin();
    put_hook("echo progress 45 writing\n" UNTIL_GO BOOTS);
    flash();
    wait_for("begun");
    actrig_close(&r);
    cleanup_free char *path = in_rig("pid"), *text = NULL;
    size_t size;
    cr_assert_eq(file_read(path, 32, &text, &size, NULL), 0);
    pid_t pid = (pid_t)strtol(text, NULL, 10);
    cr_assert_gt(pid, 1);
    cr_assert_eq(kill(-pid, SIGKILL), 0); /* of its own group: the hook */
    actrig_open(&r);
    expect_failed("FlashInterrupted", image);
    put_hook(BOOTS);
    flash();
    struct flasher_view v = wait_end();
    cr_expect_eq(v.state, FLASHER_DONE, "%s: %s", v.reason, v.message);
    expect_serves();
    end();
}

Test(act_flash, a_record_that_cannot_be_read_keeps_the_card_out)
{
    static const char *const texts[] = {"", "{", "{\"drained\":false}",
                                        ("{\"drained\":false,\"reason\":\"\","
                                         "\"message\":\"\"}")};
    struct error err = {0};
    begin();
    cleanup_free char *path = in_rig("state/flash-" CARD);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        actrig_close(&r);
        cr_assert_eq(
            file_write(path, 0600, texts[i], strlen(texts[i]), false, &err), 0);
        actrig_open(&r);
        expect_failed("FlashInterrupted", "cannot be read");
    }
    drain(false);
    expect_serves();
    end();
}

Test(act_flash, does_not_begin_where_pods_run)
{
    struct error err = {0};
    begin();
    cr_assert_eq(actrig_want(&r, "p", CARD), 0);
    cr_assert(actrig_reach(&r, "p", ACT_RUNNING));
    cr_expect_eq(flash_as((struct act_flash){0}, &err), -EBUSY);
    cr_expect(strstr(err.text, "biga card drain " CARD), "%s", err.text);
    cr_expect(!actrig_place(&r, 0).drained);
    cr_assert_eq(flash_as((struct act_flash){.force = true}, &err), 0);
    cr_expect_eq(wait_end().state, FLASHER_DONE);
    end();
}

Test(act_flash, pods_that_were_left_there_come_after_it)
{
    struct act_pod_status v = {0};
    struct error err = {0};
    begin();
    put_hook(UNTIL_GO BOOTS);
    cardserver_freeze(r.cards[0], true);
    cr_assert(actrig_becomes(&r, 0, ACT_LOST));
    cr_assert_eq(actrig_want(&r, "p", CARD), 0);
    cr_assert_eq(flash_as((struct act_flash){.force = true}, &err), 0);
    wait_for("begun");
    cardserver_freeze(r.cards[0], false);
    for (int64_t until = clock_ms() + 20000;
         clock_ms() < until && strcmp(v.reason, "WaitsForCard") != 0;) {
        actrig_step(&r, 10);
        cr_assert_eq(actuator_find(r.a, "lab", "p", &v), 0);
    }
    cr_expect_str_eq(v.reason, "WaitsForCard", "%s: %s", v.reason, v.message);
    cr_expect(strstr(v.message, "is being flashed"), "%s", v.message);
    make("go");
    cr_expect_eq(wait_end().state, FLASHER_DONE, "%s", view().message);
    cr_expect(actrig_reach(&r, "p", ACT_RUNNING));
    end();
}

Test(act_flash, says_what_is_wrong_with_what_is_asked)
{
    static const struct {
        struct act_flash flash;
        const char *says;
    } wrong[] = {
        {{.bfb = "a.bfb"}, "bfb: is \"a.bfb\""},
        {{.bfb = "/a\nb"}, "bfb: is"},
        {{.sha256 = "12"}, "sha256: is \"12\""},
        {{.version = "a\nb"}, "version: is"},
        {{.timeout_ms = -1}, "timeout: is -1 ms"},
    };
    struct error err = {0};
    begin();
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        cr_expect_eq(flash_as(wrong[i].flash, &err), -EINVAL);
        cr_expect(strstr(err.text, wrong[i].says), "%s", err.text);
    }
    struct act_flash f = {.bfb = image, .sha256 = "", .version = ""};
    f.timeout_ms = 1000;
    cr_expect_eq(actuator_flash(r.a, "none", &f, &err), -ENOENT);
    expect_serves();
    end();
}

Test(act_flash, leaves_a_card_drained_that_was)
{
    struct error err = {0};
    begin();
    drain(true);
    flash();
    cr_expect_eq(wait_end().state, FLASHER_DONE);
    cr_expect(actrig_place(&r, 0).drained);
    drain(false);
    put_hook(UNTIL_GO BOOTS);
    flash();
    wait_for("begun");
    cr_expect_eq(actuator_drain(r.a, CARD, false, &err), -EBUSY);
    cr_expect_eq(flash_as((struct act_flash){0}, &err), -EBUSY);
    drain(true); /* meanwhile */
    make("go");
    cr_expect_eq(wait_end().state, FLASHER_DONE);
    cr_expect(actrig_place(&r, 0).drained);
    drain(false);
    expect_serves();
    end();
}
