/* Logs of a pod on a card, through a relay. */
#include "advertiser/act/stream/node_streams.h"

#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "tests/lib/card/actrig.h"
#include "tests/lib/sim/relayrig.h"
#include "tests/lib/tmpdir.h"

#define LINE "2026-01-01T00:00:00Z stdout F a line\n"

static struct relay_rig relay;
static struct actrig r;
static struct node_streams *streams;
static char *dir, *base;

static void write_log(void)
{
    cleanup_free char *path = xasprintf("%s/a-1.log", dir);
    FILE *f = fopen(path, "we");
    cr_assert_not_null(f);
    cr_assert_geq(fputs(LINE, f), 0);
    cr_assert_eq(fclose(f), 0);
}

static void await_pod(const char *uid, enum act_state state)
{
    struct act_pod_status now = {0};
    while (now.state != state || strcmp(now.uid, uid) != 0) {
        (void)actuator_wait(r.a, now.version, 100);
        cr_assert_eq(actuator_find(r.a, "ns", "n0-a", &now), 0);
    }
}

static void want(const char *uid)
{
    const struct act_pod pod = {
        .namespace = "ns", .name = "n0-a", .uid = uid, .place = "card-0"};
    cr_assert_eq(actrig_want_as(&r, pod), 0);
    await_pod(uid, ACT_RUNNING);
}

static void begin(bool tls)
{
    struct error err;
    dir = tmpdir_create();
    relay_rig_start(&relay, tls);
    actrig_init(&r, 1);
    r.config.helper_image = "helper";
    cardserver_take(r.cards[0], &(struct cardserver_times){0});
    cardserver_logs(r.cards[0], dir);
    actrig_open(&r);
    write_log();
    want("u-1");
    base = xasprintf("%s://localhost:%u", tls ? "https" : "http",
                     httpd_port(relay.publish));
    const struct node_streams_config config = {
        .http = {.base = base,
                 .timeout_ms = 600000,
                 .ca_file = tls ? relay.certs->ca : NULL,
                 .cert_file = tls ? relay.certs->my_cert : NULL,
                 .key_file = tls ? relay.certs->my_key : NULL},
        .node = "n0"};
    cr_assert_eq(node_streams_start(r.a, &config, &streams, &err), 0, "%s",
                 err.text);
}

static void end(struct relay_peer *client)
{
    relay_peer_close(client);
    relay_quiesce(relay.relay);
    cr_expect(node_streams_stop(streams));
    relay_rig_stop(&relay);
    actrig_fini(&r);
    tmpdir_remove(dir);
    free(base);
}

/* A client that follows, and has the first line. */
static struct relay_peer follow(void)
{
    cleanup_str struct str head = STR_INIT(8192);
    struct relay_peer client = {.fd = -1};
    int status = 0;
    while (status != 200) { /* the helper is known to run once it was listed */
        relay_peer_close(&client);
        client = relay_rig_ask(&relay, "n0-a", "log?follow=true", "");
        status = relay_peer_head(&client, &head);
        cr_assert(status == 200 || status == 503, "%s", str_text(&head));
    }
    return client;
}

static void await_line(struct relay_peer *client)
{
    static const char chunk[] = "7\r\na line\n\r\n";
    char got[sizeof chunk] = "";
    cr_assert(relay_peer_take(client, got, sizeof chunk - 1));
    cr_assert_str_eq(got, chunk);
}

static void shows_that_a_log_was_cut(bool tls)
{
    cleanup_str struct str rest = STR_INIT(8192);
    begin(tls);
    struct relay_peer client = follow();
    await_line(&client);
    actrig_set(&r, 0);
    node_streams_poke(streams);
    cr_expect_not(relay_peer_rest(&client, true, &rest));
    cr_expect_str_eq(str_text(&rest), "biga: the log ends here: its card is "
                                      "not in this node any more\n");
    end(&client);
}

Test(node_streams, shows_that_a_log_was_cut_plain)
{
    shows_that_a_log_was_cut(false);
}

Test(node_streams, shows_that_a_log_was_cut_tls)
{
    shows_that_a_log_was_cut(true);
}

static void shows_that_it_stops(bool tls)
{
    cleanup_str struct str rest = STR_INIT(8192);
    begin(tls);
    struct relay_peer client = follow();
    await_line(&client);
    cr_expect(node_streams_stop(steal(&streams)));
    cr_expect_not(relay_peer_rest(&client, true, &rest));
    end(&client);
}

Test(node_streams, shows_that_it_stops_plain)
{
    shows_that_it_stops(false);
}

Test(node_streams, shows_that_it_stops_tls)
{
    shows_that_it_stops(true);
}

Test(node_streams, ends_a_log_with_its_pod_though_another_has_its_name)
{
    cleanup_str struct str rest = STR_INIT(8192);
    struct error err;
    begin(true);
    struct relay_peer client = follow();
    await_line(&client);
    /* of biga-card's tail, when the pod is over */
    cardserver_exec(r.cards[0], 0, "a line\n", "next=37\n");
    cr_assert_eq(actuator_end(r.a, "u-1", 0, &err), 0, "%s", err.text);
    await_pod("u-1", ACT_GONE);
    want("u-2");
    cr_expect(relay_peer_rest(&client, true, &rest));
    cr_expect_str_eq(str_text(&rest), "");
    end(&client);
}
