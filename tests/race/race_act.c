/* The socket and the feed of an actuator without cards, everything at once, for
 * some seconds, for ThreadSanitizer to watch: pods that come and go by both
 * ways, calls to cards that answer late, those who wait, an extender with
 * outages, and stops in the middle of it.
 *
 *   race_act [SECONDS]
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "advertiser/act/api/feed.h"
#include "advertiser/act/api/socket.h"
#include "lib/base/mem.h"
#include "lib/http/http.h"
#include "lib/http/httpd.h"
#include "lib/io/log.h"
#include "tests/lib/card/fakeactuator.inc"
#include "tests/lib/sim/simstate.h"
#include "tests/lib/tmpdir.h"

enum { N_PODS = 8, ROUNDS_MS = 500 };

static atomic_bool stopping;
static atomic_ulong n_requests;
static atomic_uint version = 1;
static char *base;
static pthread_mutex_t feed_lock = PTHREAD_MUTEX_INITIALIZER;
static struct feed *feed;

static void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "race_act: %s: %s\n", what, why);
    abort();
}

/* --- the extender --------------------------------------------------------- */

static void on_pods(struct httpd_request *rq, void *ctx)
{
    unsigned v = atomic_fetch_add(&version, 1);
    (void)ctx;
    if (v % 7 == 0) {
        httpd_fail(rq, 503, "an outage");
        return;
    }
    str_addf(httpd_reply(rq), "{\"version\":%u,\"resend\":%s,\"items\":[", v,
             v % 5 ? "false" : "true");
    for (unsigned i = 0; i < v % N_PODS; i++)
        str_addf(httpd_reply(rq),
                 "%s{\"uid\":\"f%u\",\"namespace\":\"feed\",\"name\":\"p%u\","
                 "\"place\":\"host\",\"stop\":%s,\"spec\":{}}",
                 i ? "," : "", i, i, v % 3 ? "false" : "true");
    str_add(httpd_reply(rq), "]}");
}

static void on_status(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    httpd_status(rq, 204);
    atomic_fetch_add(&n_requests, 1);
}

static void changed(void *ctx)
{
    (void)ctx;
    pthread_mutex_lock(&feed_lock);
    feed_poke(feed);
    pthread_mutex_unlock(&feed_lock);
}

/* --- who uses the socket -------------------------------------------------- */

struct client {
    pthread_t thread;
    uint64_t random;
};

static void step(struct client *c, struct http_client *http)
{
    static const struct {
        const char *method, *path;
    } calls[] = {
        {"PUT", ""},
        {"PUT", ""},
        {"GET", ""},
        {"POST", "/start"},
        {"POST", "/stop"},
        {"DELETE", ""},
        {"GET", "/logs"},
        {"GET", "/wait?wait=0"},
        {"GET", "/wait?version=1"},
        {"POST", "/exec"},
    };
    unsigned i = sim_random(&c->random) % ARRAY_LEN(calls);
    unsigned pod = sim_random(&c->random) % N_PODS;
    const char *method = calls[i].method;
    struct http_answer a = {.body = STR_INIT(1 << 20)};
    struct error err;
    cleanup_free char *path = xasprintf("/v1/pods/ns/p%u%s", pod,
                                        calls[i].path);
    cleanup_free char *body =
        strcmp(method, "PUT") == 0
            ? xasprintf("{\"uid\":\"s%u\",\"place\":\"card-0000-17-00\","
                        "\"spec\":{}}",
                        pod)
        : strstr(path, "exec") ? xstrdup("{\"argv\":[\"ls\"]}")
                               : NULL;
    if (http_call(http, method, path, body, body ? strlen(body) : 0, NULL, &a,
                  &err) == 0)
        atomic_fetch_add(&n_requests, 1);
    str_fini(&a.body);
}

static void *client_run(void *arg)
{
    struct client *c = arg;
    struct http_client *http = NULL;
    struct error err;
    if (http_client_create(base, 2000, &http, &err))
        die("client", err.text);
    while (!atomic_load(&stopping))
        step(c, http);
    http_client_destroy(http);
    return NULL;
}

/* Pods fare one way or another. */
static void *fate_run(void *arg)
{
    uint64_t random = 99;
    (void)arg;
    while (!atomic_load(&stopping)) {
        char uid[16];
        unsigned pod = sim_random(&random) % N_PODS;
        (void)snprintf(uid, sizeof uid, "%c%u",
                       sim_random(&random) % 2 ? 's' : 'f', pod);
        fake_set(uid, sim_random(&random) % 2 ? ACT_GONE : ACT_RUNNING, "");
        (void)usleep(300);
    }
    return NULL;
}

/* --- from start to end, again and again ------------------------------------- */

/* None takes the second that a stop waits, but on a machine that stands still:
 * that must be so in half of the rounds in the end. */
static unsigned n_rounds, n_left_to_calls;

static void serve_for_a_while(const char *path, const char *server)
{
    struct act_socket *s = NULL;
    struct feed *f = NULL;
    struct error err;
    const struct feed_config config = {
        .http = {.base = server, .timeout_ms = 30000},
        .node = "h",
        .boot_id = "b",
        .backoff_min_ms = 1,
        .backoff_max_ms = 5,
        .gap_ms = 1,
        .again_ms = 5,
    };
    if (act_socket_start(&fake, path, &s, &err) ||
        feed_start(&fake, &config, &f, &err))
        die("start", err.text);
    pthread_mutex_lock(&feed_lock);
    feed = f;
    pthread_mutex_unlock(&feed_lock);
    (void)usleep(ROUNDS_MS * 1000);
    pthread_mutex_lock(&feed_lock);
    feed = NULL;
    pthread_mutex_unlock(&feed_lock);
    feed_stop(f);
    n_rounds++;
    n_left_to_calls += !act_socket_stop(s);
}

int main(int argc, char **argv)
{
    static const struct httpd_route routes[] = {
        {HTTPD_GET, "/v1/nodes/:/pods", on_pods, 0, "pods"},
        {HTTPD_POST, "/v1/nodes/:/status", on_status, 4 << 20, "status"},
    };
    const struct httpd_config config = {.listen = "127.0.0.1:0",
                                        .routes = routes,
                                        .n_routes = ARRAY_LEN(routes)};
    struct client clients[4] = {{.random = 0}};
    unsigned seconds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 3;
    int64_t due = clock_ms() + seconds * 1000;
    struct actuator *a;
    struct httpd *extender;
    struct error err;
    pthread_t fate;
    char *dir = tmpdir_create();
    cleanup_free char *path = xasprintf("%s/s.sock", dir);
    const struct actuator_config fake_config = {.changed = changed};
    base = xasprintf("unix:%s", path);
    log_set_level(LOG_ERROR);
    (void)actuator_create(&fake_config, &a, &err);
    if (httpd_start(&config, &extender, &err))
        die("extender", err.text);
    cleanup_free char *server = xasprintf("http://127.0.0.1:%u",
                                          httpd_port(extender));
    for (size_t i = 0; i < ARRAY_LEN(clients); i++) {
        clients[i].random = i + 1;
        if (pthread_create(&clients[i].thread, NULL, client_run, &clients[i]))
            die("pthread_create", "failed");
    }
    if (pthread_create(&fate, NULL, fate_run, NULL))
        die("pthread_create", "failed");
    while (clock_ms() < due || atomic_load(&n_requests) <= 100 ||
           n_left_to_calls > n_rounds / 2)
        serve_for_a_while(path, server);
    atomic_store(&stopping, true);
    for (size_t i = 0; i < ARRAY_LEN(clients); i++)
        (void)pthread_join(clients[i].thread, NULL);
    (void)pthread_join(fate, NULL);
    httpd_stop(extender);
    fake_fini();
    tmpdir_remove(dir);
    free(base);
    printf("race_act: %lu requests\n", atomic_load(&n_requests));
    return 0;
}
