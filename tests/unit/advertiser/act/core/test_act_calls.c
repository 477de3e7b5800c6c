/* What is asked of a card on the caller's thread: exec, logs, objects. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/card/actrig.h"
#include "tests/lib/virtual.h"

TestSuite(act_calls, .init = virtual_begin, .fini = virtual_end,
          .timeout = 180);

static struct actrig r;
static const char *const argv_ls[] = {"ls"};

static void begin(const char *helper_image)
{
    actrig_init(&r, 1);
    r.config.helper_image = helper_image;
    actrig_open(&r);
    cr_assert_eq(actrig_want(&r, "x", "card-0"), 0);
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
}

static int exec(const char *name, const char *container, struct cri_exec *ret,
                struct error *err)
{
    return actuator_exec(r.a, "lab", name, container, argv_ls, 1, 5, ret, err);
}

static void until_lost(void)
{
    cardserver_freeze(r.cards[0], true);
    cr_assert(actrig_becomes(&r, 0, ACT_LOST));
}

Test(act_calls, exec_in_a_container)
{
    struct cri_exec e = {0};
    struct error err = {0};
    begin(NULL);
    cardserver_exec(r.cards[0], 3, "out", "err");
    cr_assert_eq(exec("x", NULL, &e, &err), 0, "%s", err.text);
    cr_assert_eq(e.exit_code, 3);
    cr_assert_str_eq(str_text(&e.out), "out");
    cr_assert_str_eq(str_text(&e.err), "err");
    str_fini(&e.out);
    str_fini(&e.err);
    cr_assert_eq(exec("y", NULL, &e, &err), -ENOENT);
    cr_assert_eq(exec("x", "b", &e, &err), -ENOENT);
    cr_assert_not_null(strstr(err.text, "\"b\""));
    cr_assert_eq(actuator_unwant(r.a, "x", 0, NULL), 0);
    cr_assert(actrig_reach(&r, "x", ACT_GONE));
    cr_assert_eq(exec("x", "a", &e, &err), -ENOENT);
    cr_assert_not_null(strstr(err.text, "does not run"));
    actrig_fini(&r);
}

static int stream(const struct act_stream_ask *ask, struct act_stream *ret,
                  struct error *err)
{
    struct act_stream_ask all = *ask;
    all.namespace = "lab";
    all.container = ask->container ? ask->container : "";
    all.cmd.argv = argv_ls;
    all.cmd.n_argv = 1;
    return actuator_stream(r.a, &all, ret, err);
}

Test(act_calls, says_where_a_runtime_streams)
{
    static const char url[] = "https://127.0.0.1:1234/exec/token";
    static const int32_t ports[] = {8080};
    const struct act_stream_ask asks[] = {
        {.kind = ACT_EXEC, .name = "x", .container = "a"},
        {.kind = ACT_ATTACH, .name = "x"},
        {.kind = ACT_FORWARD, .name = "x", .ports = {ports, 1}},
    };
    struct act_stream got;
    struct error err = {0};
    begin(NULL);
    cardserver_exec(r.cards[0], 0, url, "");
    for (size_t i = 0; i < ARRAY_LEN(asks); i++) {
        struct act_stream_ask other = asks[i];
        got.url[0] = '\0';
        cr_expect_eq(stream(&asks[i], &got, &err), 0, "%s", err.text);
        cr_expect_str_eq(got.url, url);
        cr_expect_str_eq(got.place.name, "card-0");
        other.uid = "another";
        cr_expect_eq(stream(&other, &got, &err), -ENOENT);
        cr_expect(strstr(err.text, "uid another"), "%s", err.text);
        other.uid = "x"; /* actrig's pods have their name for it */
        cr_expect_eq(stream(&other, &got, &err), 0, "%s", err.text);
        other.host_only = true;
        cr_expect_eq(stream(&other, &got, &err), -ENOTSUP);
        cr_expect(strstr(err.text, "is on card-0"), "%s", err.text);
    }
    cr_expect_eq(cardserver_calls(r.cards[0], "PortForward"), 2);
    cr_expect_eq(cardserver_calls(r.cards[0], "Attach"), 2);
    actrig_fini(&r);
}

Test(act_calls, streams_commands_in_host_pods)
{
    static const char url[] = "http://127.0.0.1:1234/exec/token";
    struct act_stream_ask ask = {.name = "h", .host_only = true};
    struct act_stream got;
    struct error err = {0};
    actrig_init(&r, 1);
    (void)snprintf(r.places[0].name, sizeof r.places[0].name, "host");
    actrig_open(&r);
    cr_assert_eq(actrig_want(&r, "h", "host"), 0);
    cr_assert(actrig_reach(&r, "h", ACT_RUNNING));
    cardserver_exec(r.cards[0], 0, url, "");
    cr_assert_eq(stream(&ask, &got, &err), 0, "%s", err.text);
    cr_expect_str_eq(got.url, url);
    ask.name = "y";
    cr_expect_eq(stream(&ask, &got, &err), -ENOENT);
    actrig_fini(&r);
}

Test(act_calls, a_card_that_is_lost_is_not_asked)
{
    struct cri_exec e = {0};
    struct act_object *list = NULL;
    struct error err = {0};
    size_t n = 0;
    begin(NULL);
    until_lost();
    cr_assert_eq(exec("x", "a", &e, &err), -EHOSTUNREACH);
    cr_assert_not_null(strstr(err.text, "card-0"));
    cr_assert_eq(actuator_objects(r.a, "card-0", &list, &n, &err),
                 -EHOSTUNREACH);
    cr_assert_eq(actuator_objects(r.a, "card-9", &list, &n, &err), -ENOENT);
    cardserver_freeze(r.cards[0], false);
    actrig_fini(&r);
}

static int logs(const char *name, uint64_t offset, struct str *text,
                uint64_t *next, struct error *err)
{
    const struct act_log_ask ask = {.namespace = "lab",
                                    .name = name,
                                    .container = "a",
                                    .offset = offset,
                                    .max = 100};
    struct act_log log;
    str_reset(text);
    int e = actuator_logs(r.a, &ask, &log, err);
    if (e == 0) {
        *next = log.next;
        str_add_n(text, str_text(&log.text), log.text.size);
        str_fini(&log.text);
    }
    return e;
}

Test(act_calls, logs_are_read_by_the_helper)
{
    struct str text = STR_INIT(4096);
    struct error err = {0};
    uint64_t next = 0;
    begin("helper");
    cr_assert(actrig_live(&r, 0, "biga-helper-card-0", 2));
    while (logs("x", 0, &text, &next, &err) == -EAGAIN)
        actrig_step(&r, 10); /* until it was seen to run */
    cardserver_exec(r.cards[0], 0, "hello", "next=2\nnext=12\n");
    cr_assert_eq(logs("x", 7, &text, &next, &err), 0, "%s", err.text);
    cr_assert_str_eq(str_text(&text), "hello");
    cr_assert_eq(next, 12);
    cardserver_exec(r.cards[0], 3, "", "there is none");
    cr_assert_eq(logs("x", 7, &text, &next, &err), 0, "%s", err.text);
    cr_assert_eq(next, 7);
    cardserver_exec(r.cards[0], 1, "", "an ill disk");
    cr_assert_eq(logs("x", 0, &text, &next, &err), -EIO);
    cr_assert_not_null(strstr(err.text, "an ill disk"));
    cardserver_exec(r.cards[0], 0, "x", "next=a");
    cr_assert_eq(logs("x", 0, &text, &next, &err), -EPROTO);
    cardserver_exec(r.cards[0], 0, "x",
                    "next=99999999999999999999999999999999999");
    cr_assert_eq(logs("x", 0, &text, &next, &err), -EPROTO);
    cr_assert_eq(next, 7, "what went wrong changes nothing");
    cr_assert_eq(str_text(&text)[0], '\0');
    str_fini(&text);
    actrig_fini(&r);
}

/* They are of use when it has failed. */
Test(act_calls, logs_of_a_pod_that_is_over_are_kept)
{
    char(*uids)[ACT_UID_MAX + 1] = NULL;
    struct str text = STR_INIT(4096);
    struct error err = {0};
    uint64_t next = 0;
    begin("helper");
    cr_assert(actrig_live(&r, 0, "biga-helper-card-0", 2));
    cardserver_exec(r.cards[0], 0, "why it failed\n", "next=40\n");
    cr_assert_eq(actuator_end(r.a, "x", 0, &err), 0, "%s", err.text);
    cr_assert(actrig_reach(&r, "x", ACT_GONE));
    cardserver_exec(r.cards[0], 3, "", "there is none");
    for (int round = 0; round < 3; round++) {
        cr_assert_eq(logs("x", 0, &text, &next, &err), 0, "%s", err.text);
        cr_assert_str_eq(str_text(&text), "why it failed\n");
        cr_assert_eq(next, 40);
        cr_assert_eq(logs("x", 33, &text, &next, &err), 0, "%s", err.text);
        cr_assert_str_eq(str_text(&text), "failed\n", "who followed it");
        cr_assert_eq(logs("x", 40, &text, &next, &err), 0, "%s", err.text);
        cr_assert_str_eq(str_text(&text), "");
        if (round == 0) {
            cr_assert_eq(actuator_forget(r.a, "x", &err), 0, "%s", err.text);
            continue;
        }
        actrig_close(&r);
        actrig_open(&r);
    }
    cr_assert_eq(actuator_saved_logs(r.a, "extender", &uids), 1);
    cr_assert_str_eq(uids[0], "x");
    free(uids);
    cr_assert_eq(actuator_drop_logs(r.a, "x", &err), 0, "%s", err.text);
    int e = logs("x", 0, &text, &next, &err);
    cr_assert_eq(e, -ENOENT, "%d: %s", e, err.text);
    str_fini(&text);
    actrig_fini(&r);
}

/* Its files go before the pod is said to be gone. */
Test(act_calls, logs_are_not_lost_between_the_files_end_and_the_pods)
{
    struct str text = STR_INIT(4096);
    struct error err = {0};
    struct act_pod_status v = {0};
    uint64_t next = 0;
    begin("helper");
    cr_assert(actrig_live(&r, 0, "biga-helper-card-0", 2));
    cardserver_exec(r.cards[0], 0, "why it failed\n", "next=40\n");
    cardserver_exec_refuse(r.cards[0], "rm");
    cr_assert_eq(actuator_end(r.a, "x", 0, &err), 0, "%s", err.text);
    while (strcmp(v.reason, "FilesLeft") != 0) {
        actrig_step(&r, 10);
        cr_assert_eq(actuator_find(r.a, "lab", "x", &v), 0);
    }
    cr_assert_eq(v.state, ACT_STOPPING);
    cardserver_exec(r.cards[0], 3, "", "there is none");
    cr_assert_eq(logs("x", 0, &text, &next, &err), 0, "%s", err.text);
    cr_expect_str_eq(str_text(&text), "why it failed\n");
    cr_expect_eq(next, 40);
    cardserver_exec_refuse(r.cards[0], NULL);
    cr_expect(actrig_reach(&r, "x", ACT_GONE));
    str_fini(&text);
    actrig_fini(&r);
}

Test(act_calls, logs_of_a_pod_that_was_deleted_are_not)
{
    struct str text = STR_INIT(4096);
    struct error err = {0};
    uint64_t next = 0;
    begin("helper");
    cr_assert(actrig_live(&r, 0, "biga-helper-card-0", 2));
    cardserver_exec(r.cards[0], 0, "a secret\n", "next=40\n");
    cardserver_hold(r.cards[0], "StopContainer", true); /* it ends later */
    cr_assert_eq(actuator_end(r.a, "x", 30, &err), 0, "%s", err.text);
    cr_assert_eq(actuator_unwant(r.a, "x", 0, &err), 0, "%s", err.text);
    cardserver_hold(r.cards[0], "StopContainer", false);
    cr_assert(actrig_reach(&r, "x", ACT_GONE));
    cr_assert_eq(actuator_forget(r.a, "x", &err), 0, "%s", err.text);
    cr_assert_eq(logs("x", 0, &text, &next, &err), -ENOENT);
    str_fini(&text);
    actrig_fini(&r);
}

Test(act_calls, logs_without_a_helper)
{
    struct str text = STR_INIT(4096);
    struct error err = {0};
    uint64_t next = 0;
    begin(NULL);
    cr_assert_eq(logs("x", 0, &text, &next, &err), -EAGAIN);
    cr_assert_eq(logs("y", 0, &text, &next, &err), -ENOENT);
    const struct act_pod held = {.name = "z", .place = "card-0", .held = true};
    cr_assert_eq(actrig_want_as(&r, held), 0);
    cr_assert_eq(logs("z", 5, &text, &next, &err), 0, "%s", err.text);
    cr_assert_eq(next, 5, "nothing was begun yet");
    str_fini(&text);
    actrig_fini(&r);
}

Test(act_calls, objects_are_everybodys)
{
    struct act_object *list = NULL;
    struct error err = {0};
    size_t n = 0, n_known = 0, n_ours = 0;
    begin(NULL);
    actrig_stray(&r, 0, "stray");
    r.config.cluster = "another";
    actrig_stray(&r, 0, "theirs");
    cr_assert_eq(actuator_objects(r.a, "card-0", &list, &n, &err), 0, "%s",
                 err.text);
    cr_assert_eq(n, 4);
    for (size_t i = 0; i < n; i++) {
        const struct act_object *o = &list[i];
        cr_assert_eq(o->sandbox, i < 3);
        cr_assert_eq(o->known, strcmp(o->uid, "x") == 0);
        cr_assert_eq(o->ours, strcmp(o->uid, "theirs") != 0);
        cr_assert_str_eq(o->state, o->sandbox ? "ready" : "running");
        n_known += o->known;
        n_ours += o->ours;
    }
    cr_assert_eq(n_known, 2);
    cr_assert_eq(n_ours, 3);
    cr_assert_str_eq(list[3].container, "a");
    free(list);
    actrig_fini(&r);
}
