/* What mutual TLS costs the scheduler: filter of N nodes with 8 cards over
 * one kept connection, in the clear and with client certificates, in turn, on
 * one extender; and whole connections with one small request each.
 *
 *   bench_tls
 *
 * Prints lines: what, N, requests/s in the clear, with TLS, their ratio
 * (medians of all rounds); then the same of the microseconds of a processor
 * that the server takes for one request: the client's do not count. */

#include "extender/serve/app.h"
#include "extender/serve/routes_scheduler.h"
#include "extender/server.h"
#include "lib/http/http.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "tests/lib/cpu_clock.h"
#include "tests/lib/http/certs.h"
#include "tests/lib/http/rawclient.h"
#include "tests/lib/http/tlsclient.h"
#include "tests/lib/sim/simstate.h"
#include "tests/lib/tmpdir.h"

enum { ROUNDS = 15, ROUND_MS = 200, CALL_MS = 10000, CARDS = 8 };

struct side {
    struct httpd *httpd;
    struct http_config config;
    struct http_client *client;
    struct http_answer answer;
    struct raw_reply reply;
    char url[64];
    struct figures {
        double rate[ROUNDS]; /* requests/s */
        double cost[ROUNDS]; /* microseconds of a processor, the server's */
    } kept, fresh;
};

static void must(int r, const struct error *err)
{
    if (r >= 0)
        return;
    fprintf(stderr, "bench_tls: %s\n", err->text);
    exit(1);
}

static void call(struct side *s, const struct str *body,
                 struct http_answer *answer)
{
    struct error err = {0};
    must(http_call(s->client, "POST", "/v1/scheduler/filter", body->data,
                   body->size, NULL, answer, &err),
         &err);
    if (answer->status == 200)
        return;
    fprintf(stderr, "bench_tls: status %ld: %s\n", answer->status,
            answer->body.data);
    exit(1);
}

/* One request on the kept connection. */
static void call_kept(struct side *s, const struct str *body)
{
    call(s, body, &s->answer);
}

/* One small request on a connection of its own.  Not by libcurl: what OpenSSL
 * does before the first byte takes ten times as long as the handshake. */
static void call_fresh(struct side *s, const struct str *body)
{
    const struct tls_client_config how = {.port = httpd_port(s->httpd),
                                          .ca_file = s->config.ca_file,
                                          .cert_file = s->config.cert_file,
                                          .key_file = s->config.key_file};
    int status;
    (void)body;
    if (how.ca_file)
        status = tls_client_once(&how, "/nothing", NULL);
    else
        status = raw_call(how.port, "GET", "/nothing", "", NULL, &s->reply);
    if (status != 404)
        abort();
}

/* All of the process but this thread, which is the client. */
static int64_t server_ns(void)
{
    return process_cpu_ns() - thread_cpu_ns();
}

static void one_round(struct side *s, const struct str *body,
                      void (*one)(struct side *s, const struct str *body),
                      struct figures *f, int round)
{
    int64_t begun = clock_ns(), now = begun, cpu = server_ns();
    unsigned n = 0;
    while (now - begun < (int64_t)ROUND_MS * 1000000) {
        one(s, body);
        n++;
        now = clock_ns();
    }
    f->rate[round] = n * 1e9 / (double)(now - begun);
    f->cost[round] = (double)(server_ns() - cpu) / n / 1e3;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values)
{
    qsort(values, ROUNDS, sizeof *values, compare);
    return values[ROUNDS / 2];
}

static void print(const char *what, unsigned n, struct figures *plain,
                  struct figures *tls)
{
    double a = median(plain->rate), b = median(tls->rate);
    double x = median(plain->cost), y = median(tls->cost);
    printf("%s\t%u\t%.0f\t%.0f\t%.2f\t%.0f\t%.0f\t%.2f\n", what, n, a, b, b / a,
           x, y, y / x);
}

static void side_start(struct side *s, struct app *app, struct tls *tls)
{
    struct error err = {0};
    const struct httpd_config http = {
        .name = "scheduler",
        .listen = "127.0.0.1:0",
        .routes = scheduler_routes,
        .n_routes = n_scheduler_routes,
        .ctx = app,
        .tls = tls,
    };
    must(httpd_start(&http, &s->httpd, &err), &err);
    (void)snprintf(s->url, sizeof s->url, "%s://127.0.0.1:%u",
                   tls ? "https" : "http", httpd_port(s->httpd));
    s->config.base = s->url;
    s->config.timeout_ms = CALL_MS;
    must(http_client_open(&s->config, &s->client, &err), &err);
}

static void make_files(const char *dir, char *files[5])
{
    static const char *const names[5] = {"ca.crt", "s.crt", "s.key", "c.crt",
                                         "c.key"};
    const struct cert_spec specs[2] = {
        {.name = "extender", .purposes = CERT_SERVER, .local = true},
        {.name = "system:kube-scheduler", .purposes = CERT_CLIENT}};
    struct cert *authority = cert_authority("authority");
    for (int i = 0; i < 5; i++)
        files[i] = xasprintf("%s/%s", dir, names[i]);
    cert_write(authority, files[0]);
    for (int i = 0; i < 2; i++) {
        struct cert *c = cert_create(authority, &specs[i]);
        cert_write(c, files[1 + 2 * i]);
        cert_write_key(c, files[2 + 2 * i]);
        cert_destroy(c);
    }
    cert_destroy(authority);
}

static void compose(struct app *app, unsigned n, struct str *body)
{
    str_add(body, "{\"Pod\":{\"metadata\":{\"name\":\"p\",\"namespace\":\"d\","
                  "\"uid\":\"u\",\"labels\":{\"biga.dev/role\":\"host\"}},"
                  "\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]"
                  "}},\"Nodes\":null,\"NodeNames\":[");
    for (unsigned i = 0; i < n; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "node-%05u", i);
        if (sim_publish(app->writer, name, CARDS, "boot-1", 1) < 0)
            abort();
        str_addf(body, "%s\"%s\"", i ? "," : "", name);
    }
    str_add(body, "]}");
}

static void measure(unsigned n, char *const files[5])
{
    struct server_config config = {
        .listen = {"127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"},
        .max_candidates = 16,
        .fresh_ms = 3600000,
        .sweep_ms = 1000,
        .connections = 64,
        .request_ms = 10000,
    };
    const struct tls_config t = {files[1], files[2], files[0]};
    struct side sides[2] = {{.config = {.base = NULL}},
                            {.config = {.ca_file = files[0],
                                        .cert_file = files[3],
                                        .key_file = files[4]}}};
    struct error err = {0};
    struct server *server;
    struct tls *tls;
    cleanup_str struct str body = STR_INIT(64 << 20);
    demand_config_default(&config.demand);
    must(server_start(&config, &server, &err), &err);
    must(tls_create(&t, &tls, &err), &err);
    compose(server_app(server), n, &body);
    for (int i = 0; i < 2; i++)
        str_init(&sides[i].answer.body, STR_MAX_DEFAULT);
    for (int i = 0; i < 2; i++)
        side_start(&sides[i], server_app(server), i ? tls : NULL);
    for (int round = -1; round < ROUNDS; round++)
        for (int i = 0; i < 2; i++) {
            int at = round < 0 ? 0 : round; /* the first one warms up */
            one_round(&sides[i], &body, call_kept, &sides[i].kept, at);
            one_round(&sides[i], &body, call_fresh, &sides[i].fresh, at);
        }
    print("kept", n, &sides[0].kept, &sides[1].kept);
    print("fresh", n, &sides[0].fresh, &sides[1].fresh);
    for (int i = 0; i < 2; i++) {
        http_client_destroy(sides[i].client);
        str_fini(&sides[i].answer.body);
        raw_reply_fini(&sides[i].reply);
        httpd_stop(sides[i].httpd);
    }
    tls_destroy(tls);
    server_stop(server);
}

int main(void)
{
    static const unsigned sizes[] = {100, 1000, 5000};
    char *files[5], *dir = tmpdir_create();
    log_set_level(LOG_ERROR);
    make_files(dir, files);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        measure(sizes[i], files);
    for (int i = 0; i < 5; i++)
        free(files[i]);
    tmpdir_remove(dir);
    return 0;
}
