/* What it costs a call to pass through a relay: the same unary calls over one
 * connection to a server, and through a relay to it, in turn, in one run; and
 * what memory the relay holds with many calls under way.  Client, relay and
 * server are a process each.
 *
 *   bench_grpcd [ROUNDS]     (30)
 *   bench_grpcd ROUNDS DIRECT RELAYED METHOD[=ID]…
 *
 * The second asks two sockets that are there instead, such as those of a
 * container runtime and of biga-cri: each METHOD with an empty request, or with
 * one whose first field is the text ID.
 *
 * Prints lines: how, bytes, p50 and p99 direct, p50 and p99 through the relay
 * (microseconds), how much more both are, and the ratio of the medians; then
 * the relay's resident memory (KiB) at rest, with 110 calls that are relayed,
 * with 110 that block a worker each, and after them. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/footprint.h"
#include "tests/lib/grpc/rpcclient.h"
#include "tests/lib/grpc/rpcserver.h"
#include "tests/lib/tmpdir.h"

enum { CALLS = 200, WARM = 100, MANY = 110, SIZES = 2 };

static const size_t sizes[SIZES] = {100, 30000};

/* A server of its own process; ends with ours. */
static pid_t serve(const char *path, const char *upstream)
{
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    footprint_limit();
    (void)rpc_server_create(path, upstream, NULL);
    footprint_trim();
    for (;;)
        (void)pause();
}

static struct rpc_client *open_when_there(const char *path)
{
    while (access(path, F_OK) < 0)
        (void)usleep(1000);
    return rpc_open(path);
}

static int by_size(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

struct way {
    const char *method;
    struct rpc_client *client;
    int64_t *ns;
    size_t n;
};

static void call(struct way *w, const void *data, size_t size, size_t times)
{
    cleanup_str struct str reply = STR_INIT(1 << 20);
    for (size_t i = 0; i < times; i++) {
        int64_t begun = clock_ns();
        if (rpc_unary(w->client, w->method, data, size, &reply) != 0) {
            fprintf(stderr, "bench_grpcd: %s failed\n", w->method);
            exit(1);
        }
        w->ns[w->n++] = clock_ns() - begun;
    }
}

static double at(const struct way *w, unsigned percent)
{
    return (double)w->ns[(w->n - 1) * percent / 100] / 1000;
}

static void compare(struct way *direct, struct way *relayed, const void *data,
                    size_t size, size_t rounds)
{
    struct way *both[] = {direct, relayed};
    for (size_t k = 0; k < 2; k++) {
        both[k]->n = 0;
        call(both[k], data, size, WARM);
        both[k]->n = 0;
    }
    for (size_t i = 0; i < rounds; i++)
        for (size_t k = 0; k < 2; k++)
            call(both[(i + k) % 2], data, size, CALLS);
    for (size_t k = 0; k < 2; k++)
        qsort(both[k]->ns, both[k]->n, sizeof *both[k]->ns, by_size);
    const char *name = strrchr(relayed->method, '/') + 1;
    printf("%-18s %6zu B  direct %6.1f %7.1f  relayed %6.1f %7.1f  more "
           "%6.1f %7.1f  ratio %.2f\n",
           name, size, at(direct, 50), at(direct, 99), at(relayed, 50),
           at(relayed, 99), at(relayed, 50) - at(direct, 50),
           at(relayed, 99) - at(direct, 99), at(relayed, 50) / at(direct, 50));
}

static long resident_kib(pid_t pid)
{
    cleanup_free char *path = xasprintf("/proc/%d/status", (int)pid);
    cleanup_file FILE *f = fopen(path, "re");
    char line[200];
    long kib = -1;
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "VmRSS:", 6) == 0)
            kib = strtol(line + 6, NULL, 10);
    return kib;
}

/* Memory with so many calls that wait; they are reset then. */
static long with_many(struct rpc_client *c, const char *method, pid_t pid)
{
    struct rpc_call calls[MANY];
    cleanup_str struct str reply = STR_INIT(1000);
    for (size_t i = 0; i < MANY; i++) {
        rpc_begin(c, &calls[i], method, NULL);
        rpc_send(&calls[i], "wait", 4);
        rpc_send_end(&calls[i]);
    }
    rpc_turn(c, 0);
    /* behind them all, and there and back: they have begun */
    (void)rpc_unary(c, "/r.R/Work", "", 0, &reply);
    (void)usleep(200000);
    long kib = resident_kib(pid);
    for (size_t i = 0; i < MANY; i++) {
        rpc_reset(&calls[i], NGHTTP2_CANCEL);
        rpc_end(&calls[i]);
    }
    (void)rpc_unary(c, "/r.R/Work", "", 0, &reply);
    return kib;
}

/* A message whose field 1 is that text, of less than 128 bytes. */
static size_t message_of(const char *id, char ret_data[static 130])
{
    size_t len = strlen(id);
    if (len > 127) {
        fprintf(stderr, "bench_grpcd: %s: longer than 127 bytes\n", id);
        exit(2);
    }
    ret_data[0] = 1 << 3 | 2;
    ret_data[1] = (char)len;
    memcpy(ret_data + 2, id, len);
    return 2 + len;
}

static void compare_methods(struct way *direct, struct way *relayed,
                            char **methods, size_t rounds)
{
    for (; *methods; methods++) {
        char data[130];
        size_t size = 0;
        char *id = strchr(*methods, '=');
        if (id) {
            *id++ = '\0';
            size = message_of(id, data);
        }
        direct->method = relayed->method = *methods;
        compare(direct, relayed, data, size, rounds);
    }
}

/* Of servers of our own, below dir. */
static void compare_own(struct way *direct, struct way *relayed,
                        const char *dir, size_t rounds)
{
    static const char *const ways[] = {"/r.R/Echo", "/r.Peek/Echo",
                                       "/r.Edit/Echo"};
    static char data[30000];
    cleanup_free char *far = xasprintf("%s/far", dir);
    cleanup_free char *near = xasprintf("%s/near", dir);
    pid_t server = serve(far, NULL), relay = serve(near, far);
    direct->method = "/t.T/Echo";
    direct->client = open_when_there(far);
    relayed->client = open_when_there(near);
    printf("RSS at rest %ld KiB\n", resident_kib(relay));
    for (size_t i = 0; i < ARRAY_LEN(ways); i++)
        for (size_t k = 0; k < SIZES; k++) {
            relayed->method = ways[i];
            compare(direct, relayed, data, sizes[k], rounds);
        }
    printf("RSS with %d relayed %ld KiB", MANY,
           with_many(relayed->client, "/r.R/Keep", relay));
    printf(", with %d blocked %ld KiB", MANY,
           with_many(relayed->client, "/t.T/Wait", relay));
    printf(", after %ld KiB\n", resident_kib(relay));
    (void)kill(relay, SIGKILL);
    (void)kill(server, SIGKILL);
    while (wait(NULL) > 0)
        ;
}

int main(int argc, char **argv)
{
    size_t rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 30;
    struct way direct = {NULL, NULL, NULL, 0}, relayed = direct;
    direct.ns = xcalloc(rounds * CALLS + WARM, sizeof *direct.ns);
    relayed.ns = xcalloc(rounds * CALLS + WARM, sizeof *relayed.ns);
    if (argc > 4) {
        direct.client = rpc_open(argv[2]);
        relayed.client = rpc_open(argv[3]);
        compare_methods(&direct, &relayed, argv + 4, rounds);
    } else {
        char *dir = tmpdir_create();
        compare_own(&direct, &relayed, dir, rounds);
        tmpdir_remove(dir);
    }
    rpc_close(direct.client);
    rpc_close(relayed.client);
    free(direct.ns);
    free(relayed.ns);
    return 0;
}
