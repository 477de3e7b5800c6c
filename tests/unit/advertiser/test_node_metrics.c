#include "advertiser/node_metrics.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "advertiser/places.h"
#include "lib/base/mem.h"
#include "lib/io/log.h"
#include "tests/lib/http/certs.h"
#include "tests/lib/http/rawclient.h"
#include "tests/lib/http/tlsclient.h"
#include "tests/lib/sim/simhost.h"
#include "tests/lib/tmpdir.h"

static struct node_metrics *start(const struct node_metrics_config *config)
{
    struct node_metrics *m = NULL;
    struct error err = {0};
    log_set_level(LOG_ERROR);
    cr_assert_eq(node_metrics_start(config, &m, &err), 0, "%s", err.text);
    return m;
}

static int ask(struct node_metrics *m, const char *method, const char *path,
               struct raw_reply *reply)
{
    return raw_call(node_metrics_port(m), method, path, "", NULL, reply);
}

static void expect(const struct str *text, const char *line)
{
    cr_expect(strstr(str_text(text), line), "no %s in %s", line,
              str_text(text));
}

/* Of three cards one is known to answer, one not to, and nobody asks the
 * third. */
static void look(struct node_metrics *m)
{
    cleanup_with(topo) struct topo *seen = simhost_topo("n1", 3);
    cleanup_with(topo) struct topo *told = NULL;
    struct act_place_status views[2] = {{.health = ACT_READY},
                                        {.health = ACT_LOST}};
    struct error err;
    for (size_t i = 0; i < 2; i++)
        (void)snprintf(views[i].name, sizeof views[i].name, "%s",
                       topo_device(seen, i)->id);
    cr_assert_eq(places_mark(seen, TOPO_RUNS_UNTOLD, views, 2, &told, &err), 0);
    node_metrics_look(m, told);
}

Test(node_metrics, counts_cards_as_they_are_published)
{
    struct node_metrics *m =
        start(&(struct node_metrics_config){.listen = "127.0.0.1:0"});
    struct raw_reply reply = {0};
    char type[128];
    cr_assert_eq(ask(m, "GET", "/metrics", &reply), 200);
    expect(&reply.body, "biga_advertiser_cards{health=\"unknown\"} 0\n");
    look(m);
    cr_assert_eq(ask(m, "GET", "/metrics", &reply), 200);
    cr_expect_str_eq(raw_header(&reply, "Content-Type", type, sizeof type),
                     "text/plain; version=0.0.4; charset=utf-8");
    expect(&reply.body, "biga_advertiser_cards{health=\"ready\"} 1\n");
    expect(&reply.body, "biga_advertiser_cards{health=\"lost\"} 1\n");
    expect(&reply.body, "biga_advertiser_cards{health=\"unknown\"} 1\n");
    expect(&reply.body, "biga_advertiser_build_info{version=\"");
    expect(&reply.body, "\nprocess_resident_memory_bytes ");
    cr_expect_null(strstr(str_text(&reply.body), "biga_advertiser_pods"),
                   "it runs none");
    raw_reply_fini(&reply);
    node_metrics_stop(m);
}

Test(node_metrics, can_only_be_read)
{
    struct node_metrics *m =
        start(&(struct node_metrics_config){.listen = "127.0.0.1:0"});
    struct raw_reply reply = {0};
    cr_expect_eq(ask(m, "POST", "/metrics", &reply), 405);
    cr_expect_eq(ask(m, "GET", "/", &reply), 404);
    raw_reply_fini(&reply);
    node_metrics_stop(m);
}

Test(node_metrics, counts_pods_and_calls_of_cards)
{
    struct error err = {0};
    struct act_place place = {.name = "card-0",
                              .pci = "0000:17:00.0",
                              .endpoint = "unix:///nonexistent/cri.sock"};
    struct actuator_config config = {
        .cluster = "c", .node = "n1", .probe_ms = 20, .lost_ms = 100};
    struct actuator *a = NULL;
    struct raw_reply reply = {0};
    uint64_t version = 0;
    cr_assert_eq(actuator_create(&config, &a, &err), 0, "%s", err.text);
    cr_assert_eq(actuator_set_places(a, &place, 1, &err), 0, "%s", err.text);
    struct node_metrics *m = start(
        &(struct node_metrics_config){.listen = "127.0.0.1:0", .actuator = a});
    for (struct act_place_status v = {0}; v.health != ACT_LOST;) {
        version = actuator_wait(a, version, 50);
        cr_assert_eq(actuator_find_place(a, "card-0", &v), 0);
    }
    cr_assert_eq(ask(m, "GET", "/metrics", &reply), 200);
    expect(&reply.body, "biga_advertiser_cards{health=\"lost\"} 1\n");
    expect(&reply.body, "biga_advertiser_cards{health=\"unknown\"} 0\n");
    expect(&reply.body, "biga_advertiser_pods{state=\"running\"} 0\n");
    expect(&reply.body,
           "biga_advertiser_card_calls_total{card=\"0000:17:00.0\","
           "outcome=\"ok\"} 0\n");
    cr_expect_null(
        strstr(str_text(&reply.body), "outcome=\"unreachable\"} 0\n"),
        "it was tried: %s", str_text(&reply.body));
    raw_reply_fini(&reply);
    node_metrics_stop(m);
    actuator_destroy(a);
}

Test(node_metrics, stays_on_loopback_without_tls)
{
    struct node_metrics *m = NULL;
    struct error err = {0};
    const struct node_metrics_config config = {.listen = "0.0.0.0:0"};
    cr_assert_eq(node_metrics_start(&config, &m, &err), -EPERM);
    cr_expect(strstr(err.text, "--metrics-listen: \"0.0.0.0:0\" is not"), "%s",
              err.text);
}

Test(node_metrics, tells_those_with_a_certificate_anywhere)
{
    char *dir = tmpdir_create();
    cleanup_free char *ca = xasprintf("%s/ca.pem", dir);
    cleanup_free char *cert = xasprintf("%s/node.pem", dir);
    cleanup_free char *key = xasprintf("%s/node.key", dir);
    cleanup_free char *reader = xasprintf("%s/reader.pem", dir);
    cleanup_free char *reader_key = xasprintf("%s/reader.key", dir);
    cleanup_str struct str body = STR_INIT(STR_MAX_DEFAULT);
    struct cert *authority = cert_authority("metrics");
    const struct cert_spec server = {
        .name = "node", .purposes = CERT_SERVER, .local = true};
    const struct cert_spec client = {.name = "prometheus",
                                     .purposes = CERT_CLIENT};
    cert_write(authority, ca);
    cert_issue(authority, &server, cert, key);
    cert_issue(authority, &client, reader, reader_key);
    struct node_metrics *m = start(&(struct node_metrics_config){
        .listen = "0.0.0.0:0", .cert = cert, .key = key, .client_ca = ca});
    struct tls_client_config how = {.port = node_metrics_port(m),
                                    .ca_file = ca};
    cr_expect_eq(tls_client_once(&how, "/metrics", &body), 403);
    how.cert_file = reader;
    how.key_file = reader_key;
    cr_expect_eq(tls_client_once(&how, "/metrics", &body), 200);
    expect(&body, "\nbiga_advertiser_tls_certificate_end_seconds 1");
    /* a new certificate is shown from the next step on */
    struct tls_client before = {0}, after = {0};
    cr_assert(tls_client_open(&before, &how));
    cert_issue(authority, &server, cert, key);
    node_metrics_step(m);
    cr_assert(tls_client_open(&after, &how));
    cr_expect_neq(tls_client_serial(&before), tls_client_serial(&after));
    tls_client_close(&before);
    tls_client_close(&after);
    node_metrics_stop(m);
    cert_destroy(authority);
    tmpdir_remove(dir);
}
