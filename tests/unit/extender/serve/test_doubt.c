/* After the state was found damaged nothing is given to a node before it has
 * told what runs there, or somebody says that all is known. */
#include "extender/serve/routes_private.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "extender/pods/node_reports.h"
#include "extender/run/embedded.h"
#include "extender/run/node_poll.h"
#include "extender/serve/routes_nodes.h"
#include "extender/serve/routes_read.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "tests/lib/http/rawclient.h"
#include "tests/lib/sim/extender.h"
#include "tests/lib/sim/simstate.h"
#include "tests/lib/smalldisk.h"
#include "tests/lib/tmpdir.h"

static char *dir;
static struct test_extender x;
static struct raw_reply reply;
static struct httpd_route routes[64]; /* of people, and of nodes */

static void publish(const char *node)
{
    cr_assert_eq(sim_publish(x.app.writer, node, 2, "boot", 1), 0);
}

static int bind_to(const char *pod, const char *node, struct error *err)
{
    struct demand d = sim_pod(pod, ROLE_HOST, "", 0);
    return sim_bind(x.app.writer, &d, node, NULL, err);
}

static void restart(void)
{
    writer_stop(x.app.writer);
    test_extender_write(&x, sim_writer(dir));
}

/* It has lost everything: p1 was bound to n1. */
static void lose_all(void)
{
    restart();
    publish("n1");
    cr_assert_eq(bind_to("p1", "n1", NULL), 0);
    writer_stop(x.app.writer);
    cleanup_free char *path = xasprintf("%s/biga.db", dir);
    cr_assert_eq(unlink(path), 0);
    test_extender_write(&x, sim_writer(dir));
    publish("n1");
    publish("n2");
}

static void set_up(void)
{
    log_set_level(LOG_ERROR + 1);
    dir = tmpdir_create();
    cr_assert_leq(n_read_routes + n_node_routes, ARRAY_LEN(routes));
    memcpy(routes, read_routes, n_read_routes * sizeof *routes);
    memcpy(routes + n_read_routes, node_routes, n_node_routes * sizeof *routes);
    test_extender_start(&x, routes, n_read_routes + n_node_routes, NULL);
    atomic_store(&x.app.ready, true);
    lose_all();
    node_reports_asked(x.embedded->store.reports, "n1", clock_ms());
}

static void tear_down(void)
{
    embedded_quiesce(x.embedded);
    test_extender_stop(&x);
    raw_reply_fini(&reply);
    tmpdir_remove(dir);
}

TestSuite(doubt, .init = set_up, .fini = tear_down);

static void expect_status(const char *node, enum node_status status)
{
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(x.app.writer);
    int32_t index = snapshot_find(s, node, strlen(node));
    cr_assert_neq(index, NODE_NONE);
    const struct node *n = snapshot_node(s, (size_t)index);
    cr_expect_str_eq(node_status_name(n->status), node_status_name(status),
                     "%s", node);
}

static int call(const char *method, const char *target)
{
    return raw_call(x.port, method, target, "", NULL, &reply);
}

static void expect_body(const char *part)
{
    cr_expect(strstr(str_text(&reply.body), part), "%s in %s", part,
              str_text(&reply.body));
}

/* --- while it lasts --------------------------------------------------------- */

Test(doubt, gives_nothing_to_any_node)
{
    struct error err = {0};
    expect_status("n1", NODE_DOUBTFUL);
    expect_status("n2", NODE_DOUBTFUL);
    cr_expect_eq(bind_to("q", "n1", &err), -EBUSY);
    cr_expect(strstr(err.text, "biga trust"), "%s", err.text);
    cr_expect_eq(bind_to("q", "n2", NULL), -EBUSY);
}

/* Another generation, a silence, another start, a node that is new. */
Test(doubt, outlasts_whatever_happens)
{
    cr_assert_eq(sim_publish(x.app.writer, "n1", 4, "boot", 2), 0);
    writer_sweep(x.app.writer);
    expect_status("n1", NODE_DOUBTFUL);
    publish("n3");
    expect_status("n3", NODE_DOUBTFUL);
    restart();
    expect_status("n1", NODE_DOUBTFUL);
    expect_status("n3", NODE_DOUBTFUL);
    cr_expect_eq(bind_to("q", "n3", NULL), -EBUSY);
}

Test(doubt, is_told_with_readiness_and_nodes)
{
    cr_expect_eq(call("GET", "/readyz"), 200);
    expect_body("{\"status\":\"ready\",\"doubtful\":2}\n");
    cr_expect_eq(raw_call(x.port, "GET", "/readyz", "Accept: text/plain\r\n",
                          NULL, &reply),
                 200);
    expect_body("ready\ndoubtful nodes: 2\n");
    cr_expect_eq(call("GET", "/v1/nodes?status=doubtful"), 200);
    expect_body("\"n2\"");
    cr_expect_eq(call("GET", "/metrics"), 200);
    expect_body("\nbiga_nodes{status=\"doubtful\"} 2\n");
}

/* --- an operator ------------------------------------------------------------ */

Test(doubt, is_over_for_a_node_when_an_operator_says_so)
{
    cr_expect_eq(call("DELETE", "/v1/doubt/n1"), 200);
    expect_body("{\"trusted\":\"n1\"}\n");
    expect_status("n1", NODE_READY);
    expect_status("n2", NODE_DOUBTFUL);
    cr_expect_eq(bind_to("q", "n1", NULL), 0);
    restart();
    expect_status("n1", NODE_READY);
    expect_status("n2", NODE_DOUBTFUL);
    cr_expect_eq(call("DELETE", "/v1/doubt/n9"), 404);
    expect_body("n9");
}

Test(doubt, is_over_for_all_when_an_operator_says_so)
{
    cr_expect_eq(call("DELETE", "/v1/doubt?x=1"), 400);
    cr_expect_eq(call("DELETE", "/v1/doubt"), 200);
    expect_body("{\"trusted\":\"*\"}\n");
    expect_status("n2", NODE_READY);
    restart();
    expect_status("n2", NODE_READY);
    publish("n3");
    expect_status("n3", NODE_READY);
    cr_expect_eq(call("DELETE", "/v1/doubt"), 404);
    expect_body("no node is doubtful");
}

/* --- the nodes themselves --------------------------------------------------- */

/* What n1 posts: pods "UID:STATE", with spaces between. */
static void tell(const char *pods, bool whole)
{
    cleanup_str struct str json = STR_INIT(4096);
    cleanup_with(node_report) struct node_report *status = NULL;
    cleanup_free char *rest = xstrdup(pods);
    struct error err = {0};
    char *save = NULL;
    str_add(&json, "{\"pods\":[");
    for (char *uid = strtok_r(rest, " ", &save); uid;
         uid = strtok_r(NULL, " ", &save)) {
        char *state = strchr(uid, ':');
        *state++ = '\0';
        str_addf(&json, "%s{\"uid\":\"%s\",\"state\":\"%s\"}",
                 uid == rest ? "" : ",", uid, state);
    }
    str_addf(&json, "]%s}", whole ? ",\"whole\":true" : "");
    cr_assert_eq(node_report_parse(json.data, json.size, &status, &err), 0,
                 "%s", err.text);
    embedded_heard(x.embedded, "n1", status);
    writer_sweep(x.app.writer); /* after what it has posted */
}

Test(doubt, is_over_when_a_node_has_told_all)
{
    cr_expect(embedded_doubts(x.embedded, "n1"));
    tell("", false);
    expect_status("n1", NODE_DOUBTFUL);
    tell("", true);
    expect_status("n1", NODE_READY);
    expect_status("n2", NODE_DOUBTFUL);
    cr_expect_not(embedded_doubts(x.embedded, "n1"));
    cr_expect_not(embedded_doubts(x.embedded, "n9"));
}

/* The pod that was lost runs there: its node ends it. */
Test(doubt, lasts_until_what_was_lost_has_ended)
{
    tell("uid-p1:running", true);
    expect_status("n1", NODE_DOUBTFUL);
    tell("uid-p1:stopping", true);
    expect_status("n1", NODE_DOUBTFUL);
    tell("uid-p1:gone", true);
    expect_status("n1", NODE_READY);
}

/* In several parts: all of them count. */
Test(doubt, lasts_when_one_part_of_many_was_unknown)
{
    tell("uid-p1:running", false);
    tell("", true);
    expect_status("n1", NODE_DOUBTFUL);
    tell("uid-p2:gone", false);
    expect_status("n1", NODE_DOUBTFUL);
    tell("uid-p1:gone", false);
    expect_status("n1", NODE_READY);
}

/* More than are remembered: then only an operator knows. */
Test(doubt, lasts_when_there_was_too_much_unknown)
{
    for (int i = 0; i <= NODE_REPORT_PODS_MAX; i++) {
        char uid[16];
        (void)snprintf(uid, sizeof uid, "x%d", i);
        node_reports_stranger(x.embedded->store.reports, "n1", uid, true);
    }
    for (int i = 0; i <= NODE_REPORT_PODS_MAX; i++) {
        char uid[16];
        (void)snprintf(uid, sizeof uid, "x%d", i);
        node_reports_stranger(x.embedded->store.reports, "n1", uid, false);
    }
    tell("", true);
    expect_status("n1", NODE_DOUBTFUL);
}

/* --- words that are lost ---------------------------------------------------- */

/* n1 asks for its pods, as it does every 25 s without news. */
static void ask(void)
{
    struct error err;
    if (!x.embedded->node_poll)
        cr_assert_eq(
            node_poll_start(&x.embedded->store, &x.embedded->node_poll, &err),
            0);
    cr_assert_eq(call("GET", "/v1/nodes/n1/pods"), 200);
    writer_sweep(x.app.writer); /* after what was posted */
}

/* What two whole tellings do not name any more has gone. */
Test(doubt, is_over_when_what_was_lost_is_named_no_more)
{
    tell("uid-p1:running", true);
    tell("uid-p1:stopping", true);
    tell("", true);
    expect_status("n1", NODE_DOUBTFUL);
    tell("", true);
    expect_status("n1", NODE_READY);
}

/* Named by any part of a telling, it is there. */
Test(doubt, lasts_while_some_part_names_what_was_lost)
{
    for (int i = 0; i < 5; i++) {
        tell("uid-p1:running", false);
        tell("uid-p2:gone", false);
        tell("", true);
        expect_status("n1", NODE_DOUBTFUL);
    }
}

/* A telling that was given up ends amid the parts of the next. */
Test(doubt, outlasts_a_telling_that_is_late)
{
    tell("uid-p1:running", false);
    for (int i = 0; i < 3; i++) {
        tell("uid-p1:running", false);
        tell("", true);
        tell("", true);
        expect_status("n1", NODE_DOUBTFUL);
    }
}

/* One that began before this extender did: its first parts were told to the
 * one before. */
Test(doubt, outlasts_a_telling_that_was_not_asked_for)
{
    node_reports_destroy(x.embedded->store.reports);
    x.embedded->store.reports = node_reports_create();
    tell("", true);
    expect_status("n1", NODE_DOUBTFUL);
    ask();
    expect_status("n1", NODE_DOUBTFUL);
    tell("", true);
    expect_status("n1", NODE_READY);
}

/* What is said while the node counts as silent is heard. */
Test(doubt, is_over_when_the_end_was_told_by_a_stale_node)
{
    clock_set_fake(1000000);
    restart();
    tell("uid-p1:running", true);
    clock_set_fake(1015001);
    writer_sweep(x.app.writer);
    expect_status("n1", NODE_STALE);
    tell("uid-p1:gone", false);
    expect_status("n1", NODE_STALE);
    publish("n1");
    writer_sweep(x.app.writer);
    expect_status("n1", NODE_DOUBTFUL);
    tell("", false);
    expect_status("n1", NODE_READY);
    clock_set_fake(-1);
}

/* And so is what comes from one that is heard for the first time. */
Test(doubt, lasts_when_a_stale_node_names_what_was_lost)
{
    clock_set_fake(1000000);
    restart();
    clock_set_fake(1015001);
    writer_sweep(x.app.writer);
    tell("uid-p1:running", false);
    publish("n1");
    tell("", true);
    expect_status("n1", NODE_DOUBTFUL);
    clock_set_fake(-1);
}

Test(doubt, is_over_when_it_can_be_written_down_again)
{
    writer_stop(x.app.writer);
    if (!smalldisk_mount(dir)) {
        test_extender_write(&x, sim_writer(NULL));
        cr_skip_test("a small file system cannot be mounted here");
    }
    test_extender_write(&x, sim_writer(dir));
    lose_all();
    cleanup_free char *ballast = xasprintf("%s/ballast", dir);
    smalldisk_fill(ballast);
    int result = 0;
    for (int64_t i = 2; i < 300 && result == 0; i++)
        result = sim_publish(x.app.writer, "n2", 2, "boot", i);
    cr_assert_eq(result, -ENOSPC);
    ask();
    tell("", true);
    expect_status("n1", NODE_DOUBTFUL);
    cr_assert_eq(unlink(ballast), 0);
    ask();
    expect_status("n1", NODE_READY);
    expect_status("n2", NODE_DOUBTFUL);
    smalldisk_umount(dir);
}
