/* Lists and watches one collection of a real API server until it is told to
 * end (SIGINT, SIGTERM), and says what a handler is told:
 *
 *   bench_reflector KUBECONFIG PATH [QUERY]
 *
 *   list
 *   put NAME
 *   gone NAME
 *   listed 20000 objects, 89906102 bytes, 1176 ms, peak 12032 KiB
 *   ended after 2 ms, 1 lists, 1 watches, 3 events, 0 failures, peak …
 */
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "lib/base/jscan.h"
#include "lib/io/clock.h"
#include "lib/kube/reflector.h"

struct counts {
    unsigned long objects;
    size_t bytes;
    int64_t begun_ms;
};

static void die(const char *what)
{
    fprintf(stderr, "bench_reflector: %s\n", what);
    exit(1);
}

/* Not that of getrusage: it counts who started the program, too. */
static long peak_kib(void)
{
    cleanup_file FILE *f = fopen("/proc/self/status", "re");
    char line[256];
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "VmHWM:", 6) == 0)
            return strtol(line + 6, NULL, 10);
    return -1;
}

/* metadata.name, or nothing. */
static struct jtext name_of(const char *json, size_t size)
{
    struct jscan s;
    struct jtext key, name = {"", 0, false};
    jscan_init(&s, json, size);
    if (!jscan_object(&s))
        return name;
    while (jscan_member(&s, &key)) {
        if (!jtext_is(&key, "metadata")) {
            (void)jscan_skip(&s);
            continue;
        }
        if (!jscan_object(&s))
            break;
        while (jscan_member(&s, &key))
            (void)(jtext_is(&key, "name") ? jscan_string(&s, &name)
                                          : jscan_skip(&s));
        break;
    }
    return name;
}

static void say(const char *what, const char *json, size_t size)
{
    struct jtext name = name_of(json, size);
    printf("%s %.*s\n", what, (int)name.size, name.data);
}

static void on_list(void *ctx)
{
    struct counts *c = ctx;
    *c = (struct counts){.begun_ms = clock_ms()};
    puts("list");
}

static void on_put(void *ctx, const char *json, size_t size)
{
    struct counts *c = ctx;
    c->objects++;
    c->bytes += size;
    say("put", json, size);
}

static void on_gone(void *ctx, const char *json, size_t size)
{
    (void)ctx;
    say("gone", json, size);
}

static void on_listed(void *ctx)
{
    struct counts *c = ctx;
    printf("listed %lu objects, %zu bytes, %" PRId64 " ms, peak %ld KiB\n",
           c->objects, c->bytes, clock_ms() - c->begun_ms, peak_kib());
}

static void wait_for_end(const sigset_t *ends)
{
    int number;
    while (sigwait(ends, &number) != 0)
        ;
}

int main(int argc, char **argv)
{
    cleanup_with(kube_config) struct kube_config *config = NULL;
    struct counts counts = {0};
    struct reflector *r = NULL;
    struct reflector_state state;
    struct error err = {0};
    sigset_t ends;
    if (argc < 3 || argc > 4)
        die("usage: bench_reflector KUBECONFIG PATH [QUERY]");
    /* the log may share the file, and comes between lines */
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    (void)sigemptyset(&ends);
    (void)sigaddset(&ends, SIGINT);
    (void)sigaddset(&ends, SIGTERM);
    (void)pthread_sigmask(SIG_BLOCK, &ends, NULL); /* before the thread */
    const struct reflector_kind kind = {
        .name = "objects",
        .path = argv[2],
        .query = argv[3],
        .handler = {on_list, on_put, on_gone, on_listed},
        .ctx = &counts,
    };
    if (kube_config_load(argv[1], &config, &err) < 0 ||
        reflector_start(config, &kind, 1, &r, &err) < 0)
        die(err.text);
    wait_for_end(&ends);
    reflector_state(r, 0, &state);
    int64_t begun = clock_ms();
    reflector_stop(r);
    printf("ended after %" PRId64 " ms, %" PRIu64 " lists, %" PRIu64
           " watches, %" PRIu64 " events, %" PRIu64 " failures, peak %ld KiB\n",
           clock_ms() - begun, state.lists, state.watches, state.events,
           state.failures, peak_kib());
    return 0;
}
