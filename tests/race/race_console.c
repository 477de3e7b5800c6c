/* Sessions of the console and live followers, while pods come and go, tokens
 * are replaced and one client hangs up, for some seconds, for ThreadSanitizer
 * to watch: an admin and a tenant, who is never shown another's pods.
 *
 *   race_console [SECONDS]
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "extender/admit/access.h"
#include "extender/serve/app.h"
#include "extender/server.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "tests/lib/http/certs.h"
#include "tests/lib/http/rawclient.h"
#include "tests/lib/sim/simstate.h"
#include "tests/lib/tmpdir.h"

enum { N_NODES = 8, N_PODS = 40 };
#define ADMIN "admin-admin-admin"
#define TENANT "tenant-tenant-tenant"
#define LINES ADMIN ",admin\n" TENANT ",tenant,log:mine\n"

static struct server *server;
static char *tokens;
static atomic_bool stopping;
static atomic_ulong n_binds, n_pages, n_events, n_logins;

struct worker {
    pthread_t thread;
    void (*step)(struct worker *w);
    uint64_t random;
    struct raw_reply reply;
};

static void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "race_console: %s: %.2000s\n", what, why);
    abort();
}

/* Half of the pods are of namespace "mine", the others of "ns". */
static void step_bind(struct worker *w)
{
    struct writer *writer = server_app(server)->writer;
    unsigned i = sim_random(&w->random) % N_PODS;
    char pod[16], node[16];
    (void)snprintf(pod, sizeof pod, "secret%u", i);
    (void)snprintf(node, sizeof node, "n%u", sim_random(&w->random) % N_NODES);
    if (i % 2)
        (void)snprintf(pod, sizeof pod, "own%u", i);
    struct demand d = sim_pod(pod, ROLE_HOST, "", 0);
    if (i % 2)
        (void)snprintf(d.namespace, sizeof d.namespace, "mine");
    if (i % 2 || sim_random(&w->random) % 2)
        (void)sim_bind(writer, &d, node, NULL, NULL); /* or there is no room */
    else
        (void)sim_release(writer, pod); /* or no such pod */
    n_binds++;
}

static int ask(struct worker *w, const char *method, const char *path,
               const char *token, const char *body)
{
    cleanup_free char *headers =
        xasprintf("Cookie: biga=%s\r\nSec-Fetch-Site: same-origin\r\n", token);
    int status = raw_call(server_port(server, SERVER_READ), method, path,
                          headers, body, &w->reply);
    if (status == 0)
        die(path, "no answer");
    return status;
}

static void step_look(struct worker *w)
{
    static const char *const paths[] = {
        "/",         "/ui/nodes/n0",  "/ui/search?q=e", "/ui/jobs",
        "/v1/nodes", "/v1/pending",   "/v1/usage",      "/v1/allocations",
        "/v1/cards", "/ui/nodes?x=y", "/ui/events",     "/v1/nodes/n1/drawing"};
    bool admin = sim_random(&w->random) % 2;
    const char *path = paths[sim_random(&w->random) % ARRAY_LEN(paths)];
    int status = ask(w, "GET", path, admin ? ADMIN : TENANT, NULL);
    if (status != 200 && status != 400 && status != 503)
        die(path, str_text(&w->reply.body));
    if (!admin && strstr(str_text(&w->reply.body), "secret"))
        die(path, str_text(&w->reply.body));
    n_pages++;
}

static void step_login(struct worker *w)
{
    if (ask(w, "POST", "/ui/login", "x", "token=" TENANT "&next=/ui/jobs") !=
        303)
        die("login", str_text(&w->reply.body));
    if (ask(w, "POST", "/ui/logout", TENANT, "") != 303)
        die("logout", str_text(&w->reply.body));
    n_logins++;
}

/* Hear something, and go in the middle of it. */
static void step_follow(struct worker *w)
{
    static const char *const paths[] = {
        "/v1/changes", "/v1/events?follow=true&since=2020-01-01T00:00:00Z"};
    bool admin = sim_random(&w->random) % 2;
    char heard[4096];
    cleanup_fd int fd = raw_connect(server_port(server, SERVER_READ));
    cleanup_free char *text = xasprintf(
        "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n",
        paths[sim_random(&w->random) % 2], admin ? ADMIN : TENANT);
    (void)raw_send(fd, text);
    for (unsigned i = sim_random(&w->random) % 4 + 1; i > 0; i--) {
        ssize_t n = read(fd, heard, sizeof heard - 1);
        if (n <= 0)
            return;
        heard[n] = '\0';
        if (!admin && strstr(heard, "secret"))
            die("followed", heard);
        n_events++;
        if (!strstr(heard, "data:"))
            break; /* it may be long until there is more */
    }
}

/* Another file with the same tokens, and what was kept is forgotten. */
static void step_tokens(struct worker *w)
{
    cleanup_free char *text = xasprintf("# %u\n" LINES, sim_random(&w->random));
    cleanup_free char *beside = xasprintf("%s.new", tokens);
    cert_write_text(text, beside);
    if (rename(beside, tokens) != 0)
        die("rename", tokens);
    access_poll(server_app(server)->listener.access);
    (void)usleep(1000);
}

static void *work(void *ctx)
{
    struct worker *w = ctx;
    while (!atomic_load(&stopping))
        w->step(w);
    raw_reply_fini(&w->reply);
    return NULL;
}

static void start(const char *dir)
{
    struct server_config config = {
        .listen = {"127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"},
        .max_candidates = 16,
        .fresh_ms = 3600000,
        .sweep_ms = 100,
        .connections = 1024,
        .request_ms = 600000, /* slow is no error */
        .token_file = tokens,
        .state_dir = dir,
    };
    struct error err;
    demand_config_default(&config.demand);
    cert_write_text(LINES, tokens);
    if (server_start(&config, &server, &err))
        die("start", err.text);
    for (int i = 0; i < N_NODES; i++) {
        char node[16];
        (void)snprintf(node, sizeof node, "n%d", i);
        if (sim_publish(server_app(server)->writer, node, 8, "boot", 1) != 0)
            die(node, "cannot be published");
    }
}

int main(int argc, char **argv)
{
    int64_t seconds = argc > 1 ? strtol(argv[1], NULL, 10) : 3;
    struct worker workers[] = {{.step = step_bind},   {.step = step_look},
                               {.step = step_look},   {.step = step_login},
                               {.step = step_follow}, {.step = step_follow},
                               {.step = step_tokens}};
    char *dir = tmpdir_create();
    tokens = xasprintf("%s/tokens", dir);
    log_set_level(LOG_ERROR);
    start(dir);
    for (size_t i = 0; i < ARRAY_LEN(workers); i++) {
        workers[i].random = i + 1;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
            die("thread", "cannot be started");
    }
    (void)sleep((unsigned)seconds);
    while (!n_binds || !n_pages || !n_events || !n_logins)
        (void)usleep(10000);
    atomic_store(&stopping, true);
    for (size_t i = 0; i < ARRAY_LEN(workers); i++)
        (void)pthread_join(workers[i].thread, NULL); /* it was started */
    server_stop(server);
    tmpdir_remove(dir);
    free(tokens);
    (void)printf(
        "race_console: %lu binds, %lu pages, %lu logins, %lu pieces of "
        "events\n",
        atomic_load(&n_binds), atomic_load(&n_pages), atomic_load(&n_logins),
        atomic_load(&n_events));
    return 0;
}
