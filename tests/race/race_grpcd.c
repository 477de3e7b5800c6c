/* Calls of all kinds, resets, deadlines, lost connections and a stop at once:
 * every call that was routed ends exactly once, and no byte is held in the
 * end.  $BIGA_RACE_ROUNDS says how often (8). */
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "tests/lib/grpc/rpcclient.h"
#include "tests/lib/grpc/rpcserver.h"

enum { CLIENTS = 4, CALLS = 24, AT_ONCE = 6 };

struct side {
    struct rpc_server *s;
    struct rpc_client *client;
    unsigned seed;
    bool stops; /* the server does, meanwhile */
    atomic_uint *n_done;
    pthread_t thread;
};

static const char *const methods[] = {
    "/t.T/Echo",  "/t.T/Work", "/t.T/Long",    "/t.T/Wait",     "/t.T/Keep",
    "/t.T/Count", "/t.T/Sum",  "/t.T/Fail",    "/r.R/Echo",     "/r.R/Wait",
    "/r.R/Count", "/r.R/Sum",  "/r.Peek/Echo", "/r.Peek/Count", "/r.Edit/Work"};

static unsigned next(struct side *c, unsigned below)
{
    c->seed = c->seed * 1664525 + 1013904223;
    return (c->seed >> 8) % below;
}

static void begin(struct side *c, struct rpc_client *client,
                  struct rpc_call *call)
{
    static const char *const late[] = {"grpc-timeout", "3m", NULL};
    const char *method = methods[next(c, ARRAY_LEN(methods))];
    rpc_begin(client, call, method, next(c, 2) ? late : NULL);
    rpc_send(call, "7 3000", 6);
    if (next(c, 4))
        rpc_send_end(call);
}

/* Some calls are waited for in vain: their clients reset them, or go. */
static void *run(void *arg)
{
    struct side *c = arg;
    struct rpc_client *client = c->client;
    struct rpc_call calls[AT_ONCE];
    for (int i = 0; i < CALLS && !client->closed; i += AT_ONCE) {
        for (int k = 0; k < AT_ONCE; k++)
            begin(c, client, &calls[k]);
        for (unsigned n = next(c, 12); n > 0; n--)
            rpc_turn(client, 1);
        for (int k = 0; k < AT_ONCE; k++) {
            if (!calls[k].closed)
                rpc_reset(&calls[k], NGHTTP2_CANCEL);
            rpc_end(&calls[k]);
        }
        if (!c->stops && next(c, 5) == 0) {
            rpc_close(client);
            client = rpc_open(c->s->path);
        }
    }
    rpc_close(client);
    atomic_fetch_add(c->n_done, 1);
    return NULL;
}

/* On a busy machine a client may have reset its calls before any has begun. */
static void await_begun(const struct rpc_server *s, unsigned n,
                        const atomic_uint *n_done)
{
    while (atomic_load(&s->n_begun) < n && atomic_load(n_done) < CLIENTS)
        (void)sched_yield();
}

/* How many calls there were. */
static uint64_t check(struct rpc_server *s)
{
    struct grpcd_stats stats;
    grpcd_stats(s->grpcd, &stats);
    assert(stats.n_routed == stats.n_ended);
    assert(stats.n_ended == atomic_load(&s->n_ended));
    assert(stats.n_calls == 0 && stats.n_connections == 0);
    assert(stats.held == 0);
    return stats.n_ended;
}

static uint64_t round_of(unsigned seed)
{
    struct rpc_server *far = rpc_server_create(NULL, NULL, NULL);
    struct rpc_server *near = rpc_server_create(NULL, far->path, NULL);
    struct side sides[CLIENTS];
    atomic_uint n_done = 0;
    for (unsigned i = 0; i < CLIENTS; i++) {
        sides[i] = (struct side){.s = near,
                                 .client = rpc_open(near->path),
                                 .seed = seed * 31 + i,
                                 .stops = seed % 4 == 3,
                                 .n_done = &n_done};
        if (pthread_create(&sides[i].thread, NULL, run, &sides[i]) != 0)
            abort();
    }
    await_begun(near, 1 + seed % 16, &n_done);
    if (seed % 3 == 0)
        rpc_server_release(far);
    if (seed % 3 == 1)
        grpcd_stop(far->grpcd, seed % 2 ? 5 : 0);
    if (seed % 4 == 3) {
        rpc_server_release(near);
        grpcd_stop(near->grpcd, seed % 8 == 3 ? 2 : 0);
    }
    for (unsigned i = 0; i < CLIENTS; i++)
        (void)pthread_join(sides[i].thread, NULL);
    rpc_server_release(near);
    grpcd_stop(near->grpcd, seed % 2 ? 1000 : 0);
    rpc_server_release(far);
    grpcd_stop(far->grpcd, 0);
    uint64_t n = check(near) + check(far);
    rpc_server_destroy(near);
    rpc_server_destroy(far);
    return n;
}

int main(void)
{
    const char *text = getenv("BIGA_RACE_ROUNDS");
    unsigned rounds = text ? (unsigned)strtoul(text, NULL, 10) : 8;
    uint64_t n = 0;
    for (unsigned i = 0; i < rounds; i++)
        n += round_of(i);
    printf("%u rounds, %llu calls\n", rounds, (unsigned long long)n);
    return 0;
}
