/* biga card, pods, logs and exec, against the socket with an actuator that has
 * no cards. */
#include "cli/pod/log_clean.h"

#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <pthread.h>

#include "advertiser/act/api/socket.h"
#include "cli/base/settings.h"
#include "cli/verb/verb.h"
#include "cli/verbs.h"
#include "lib/base/mem.h"
#include "tests/lib/card/fakeactuator.inc"
#include "tests/lib/tmpdir.h"

static struct {
    char *dir, *path;
    struct act_socket *s;
    struct cli c;
} at;

static void start(void)
{
    struct error err;
    struct actuator *a;
    const struct actuator_config config = {.node = "h"};
    at.dir = tmpdir_create();
    at.path = xasprintf("%s/s.sock", at.dir);
    (void)actuator_create(&config, &a, &err);
    cr_assert_eq(act_socket_start(a, at.path, &at.s, &err), 0, "%s", err.text);
    at.c = (struct cli){.set = {.socket = at.path,
                                .tail = -1,
                                .since = "",
                                .container = "",
                                .namespace = "",
                                .limit_bytes = 1 << 20,
                                .exec_timeout = 3},
                        .out = STR_INIT(1 << 20)};
}

static void stop(void)
{
    cr_expect(act_socket_stop(at.s));
    fake_fini();
    tmpdir_remove(at.dir);
    free(at.path);
    str_fini(&at.c.out);
}

static void start_quiet(void)
{
    cr_redirect_stdout();
    cr_redirect_stderr();
    start();
}

TestSuite(onhost, .init = start_quiet, .fini = stop);

static void add_pod(const char *name, const char *uid, const char *place)
{
    struct error err;
    const struct act_pod pod = {.namespace = "default",
                                .name = name,
                                .uid = uid,
                                .place = place,
                                .pair_key = "",
                                .spec = "{}",
                                .spec_size = 2,
                                .owner = "extender"};
    cr_assert_eq(actuator_want(&fake, &pod, &err), 0, "%s", err.text);
}

/* Run `biga card …`, or what `verb` says; NULL ends the arguments. */
static int run(verb_f *verb, const char *a, const char *b, const char *c,
               const char *d)
{
    char *argv[] = {(char *)(uintptr_t)a, (char *)(uintptr_t)b,
                    (char *)(uintptr_t)c, (char *)(uintptr_t)d, NULL};
    int argc = 0;
    while (argv[argc])
        argc++;
    str_reset(&at.c.out);
    return verb(&at.c, argc, argv);
}

static void says(const char *text)
{
    cr_expect(strstr(str_text(&at.c.out), text), "not \"%s\" in:\n%s", text,
              str_text(&at.c.out));
}

/* What was written to stderr up to now. */
static void complains(const char *text)
{
    char got[4096] = "";
    FILE *f = cr_get_redirected_stderr();
    (void)fflush(stderr);
    size_t n = fread(got, 1, sizeof got - 1, f);
    got[n] = '\0';
    cr_expect(strstr(got, text), "not \"%s\" in:\n%s", text, got);
}

Test(onhost, cards_are_listed_and_drained)
{
    cr_expect_eq(run(verb_card, "ps", NULL, NULL, NULL), 0);
    says("CARD             HEALTH  FOR  PODS");
    says("0000:17:00.0     ready    0s     0");
    cr_expect_eq(run(verb_card, "drain", "card-0000-17-00", NULL, NULL), 0);
    says("0000:17:00.0 is drained: nothing new comes, and nothing runs "
         "there.\n");
    cr_expect(fake.places[0].drained);
    fake.places[0].n_pods = 2;
    cr_expect_eq(run(verb_card, "drain", "card-0000-17-00", NULL, NULL), 0);
    says("nothing new comes, 2 pods stay there.\n");
    cr_expect_eq(run(verb_card, "undrain", "0000:17:00.0", NULL, NULL), 0);
    says("0000:17:00.0 takes pods again.\n");
    cr_expect_eq(run(verb_card, "objects", "card-0000-5e-00", NULL, NULL), 0);
    says("abc123");
    says("this node, not wanted");
    says("somebody else");
    cr_expect_eq(run(verb_card, "drain", "card-9", NULL, NULL), CLI_FAILED);
    complains("answered 404: there is no card \"card-9\" here; there is "
              "card-0000-17-00");
}

Test(onhost, pods_are_listed)
{
    cr_expect_eq(run(verb_pods, NULL, NULL, NULL, NULL), 0);
    says("No pod is on this host or its cards.\n");
    add_pod("a", "u1", "card-0000-17-00");
    add_pod("b", "u2", "host");
    fake_set("u1", ACT_FAILED, "ImageMissing");
    cr_expect_eq(run(verb_pods, NULL, NULL, NULL, NULL), 0);
    says("POD        PLACE         STATE");
    says("default/a  0000:17:00.0  failed");
    says("ImageMissing");
    says("default/b  host          wanted");
    cr_expect_eq(run(verb_card, "ps", "host", NULL, NULL), 0);
    says("default/b");
    cr_expect(!strstr(str_text(&at.c.out), "default/a"));
    cr_expect_eq(run(verb_card, "ps", "0000:17:00.0", NULL, NULL), 0);
    says("default/a");
    cr_expect_eq(run(verb_card, "ps", "card-9", NULL, NULL), CLI_FAILED);
    at.c.set.json = true;
    cr_expect_eq(run(verb_pods, NULL, NULL, NULL, NULL), 0);
    says("{\"version\":");
    says("\"name\":\"a\"");
    cr_expect_eq(run(verb_card, "ps", "host", NULL, NULL), 0);
    says("\"name\":\"b\"");
    cr_expect(!strstr(str_text(&at.c.out), "\"name\":\"a\""));
    complains("there is no card \"card-9\" here; there is card-0000-17-00");
}

Test(onhost, pods_are_listed_by_name)
{
    add_pod("b", "u1", "host");
    add_pod("a", "u2", "host");
    cr_expect_eq(run(verb_pods, NULL, NULL, NULL, NULL), 0);
    cr_expect_lt(strstr(str_text(&at.c.out), "default/a"),
                 strstr(str_text(&at.c.out), "default/b"));
}

Test(onhost, usage_is_told)
{
    cr_expect_eq(run(verb_card, "frob", NULL, NULL, NULL), CLI_USAGE);
    cr_expect_eq(run(verb_card, "drain", NULL, NULL, NULL), CLI_USAGE);
    cr_expect_eq(run(verb_card, "exec", "card", "pod", NULL), CLI_USAGE);
    complains("\"frob\": must be ps, show, drain, undrain, flash, objects, "
              "logs or exec\nbiga: usage: biga card drain CARD\n");
}

static void printed(const char *want, size_t size)
{
    char got[65536];
    (void)fflush(stdout);
    size_t n = fread(got, 1, sizeof got, cr_get_redirected_stdout());
    cr_expect_eq(n, size, "%zu bytes", n);
    cr_expect_eq(memcmp(got, want, size), 0, "%.*s", (int)n, got);
}

Test(onhost, logs_are_printed_as_they_are)
{
    add_pod("a", "u1", "card-0000-17-00");
    str_add_n(&fake.log, "one\n\0\xff\033[1m\n", 11);
    cr_expect_eq(run(verb_logs, "a", NULL, NULL, NULL), 0);
    printed("one\n\0\xff\033[1m\n", 11);
}

Test(onhost, logs_have_a_cap)
{
    add_pod("a", "u1", "card-0000-17-00");
    str_add(&fake.log, "0123456789");
    at.c.set.limit_bytes = 4;
    cr_expect_eq(run(verb_logs, "default/a", NULL, NULL, NULL), 0);
    printed("0123", 4);
    complains("that were 4 bytes; more with --limit-bytes");
}

static void *write_later(void *arg)
{
    (void)arg;
    (void)usleep(200000);
    pthread_mutex_lock(&fake.lock);
    str_add(&fake.log, "second\n");
    pthread_mutex_unlock(&fake.lock);
    (void)usleep(1200000);
    pthread_mutex_lock(&fake.lock);
    str_add(&fake.log, "last\n");
    pthread_mutex_unlock(&fake.lock);
    fake_set("u1", ACT_GONE, "");
    return NULL;
}

Test(onhost, logs_are_followed_to_the_end)
{
    pthread_t writer;
    add_pod("a", "u1", "card-0000-17-00");
    fake_set("u1", ACT_RUNNING, "");
    str_add(&fake.log, "first\n");
    at.c.set.follow = true;
    cr_assert_eq(pthread_create(&writer, NULL, write_later, NULL), 0);
    cr_expect_eq(run(verb_logs, "a", NULL, NULL, NULL), 0);
    (void)pthread_join(writer, NULL);
    printed("first\nsecond\nlast\n", 18);
}

Test(onhost, commands_run_and_end_with_their_code)
{
    add_pod("a", "u1", "card-0000-17-00");
    at.c.set.container = "side";
    cr_expect_eq(run(verb_exec, "a", "ls", "-l", NULL), 7);
    printed("side:3 ls -l", 12);
}

Test(onhost, the_namespace_that_is_given_is_meant)
{
    at.c.set.namespace = "lab";
    cr_expect_eq(run(verb_card, "logs", "card-9", "b", NULL), CLI_FAILED);
    complains("there is no pod lab/b on this node");
    add_pod("a", "u1", "card-0000-17-00");
    cr_expect_eq(run(verb_pods, NULL, NULL, NULL, NULL), 0);
    cr_expect(!strstr(str_text(&at.c.out), "default/a"), "%s",
              str_text(&at.c.out));
    at.c.set.namespace = "default";
    cr_expect_eq(run(verb_pods, NULL, NULL, NULL, NULL), 0);
    cr_expect(strstr(str_text(&at.c.out), "default/a"), "%s",
              str_text(&at.c.out));
}

Test(onhost, a_pod_must_be_on_the_card_that_is_named)
{
    add_pod("a", "u1", "card-0000-17-00");
    cr_expect_eq(run(verb_card, "exec", "host", "a", "ls"), CLI_FAILED);
    cr_expect_eq(run(verb_card, "logs", "card-9", "a", NULL), CLI_FAILED);
    cr_expect_eq(run(verb_logs, "b", NULL, NULL, NULL), CLI_FAILED);
    complains("default/a is on card-0000-17-00, not on host\n"
              "biga: default/a is on card-0000-17-00, not on card-9\n"
              "biga: the advertiser answered 404: there is no pod default/b");
    cr_expect_eq(run(verb_card, "exec", "card-0000-17-00", "a", "ls"), 7);
}

Test(onhost, nobody_there_says_what_to_start)
{
    at.c.set.socket = "/nowhere/actuator.sock";
    cr_expect_eq(run(verb_pods, NULL, NULL, NULL, NULL), CLI_FAILED);
    complains("biga: /nowhere/actuator.sock: No such file or directory\n"
              "This asks the advertiser of this host.  Start it with\n"
              "`biga-advertiser --actuate DIR`");
}

Test(onhost_text, terminals_are_not_steered)
{
    cleanup_str struct str out = STR_INIT(256);
    struct log_cut cut = {.n = 0};
    log_clean("a\tb\r\n\033[1m\x7f\0\xc2\x9b\xc3\xa4\xc2", 16, &cut, &out);
    cr_expect_str_eq(str_text(&out), "a\tb\r\n?[1m???\xc3\xa4");
    str_reset(&out);
    log_clean("\xa4\x9bm\xe2\x80", 5, &cut, &out); /* its other half */
    log_clean("", 0, &cut, &out);
    log_clean("\xae\xe2\x80\xa8\xe2\x80\xa6", 7, &cut, &out);
    cr_expect_str_eq(str_text(&out), "\xc2\xa4?m??\xe2\x80\xa6");
}
