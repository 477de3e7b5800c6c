/* The floor: the server that Biga stands on, answering every request with
 * the same bytes, as many as Biga's answer of 16 nodes has.  It receives the
 * whole body and does not look at it; a slice that is put is answered with {}.
 *
 *   bench_canned NAMES-FILE [TOP]      prints its port, serves until killed */
#include <signal.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/http/httpd.h"

enum { NAME_MAX_BYTES = 256, TOP_DEFAULT = 16, BODY_MAX = 16 << 20 };

struct canned {
    struct str filter;
    struct str prioritize;
};

static void serve_filter(struct httpd_request *rq, void *ctx)
{
    const struct canned *c = ctx;
    str_add_n(httpd_reply(rq), c->filter.data, c->filter.size);
}

static void serve_prioritize(struct httpd_request *rq, void *ctx)
{
    const struct canned *c = ctx;
    str_add_n(httpd_reply(rq), c->prioritize.data, c->prioritize.size);
}

static void serve_slice(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    str_add(httpd_reply(rq), "{}\n");
}

static const struct httpd_route routes[] = {
    {HTTPD_PUT, "/apis/resource.k8s.io/v1/resourceslices/:", serve_slice,
     BODY_MAX, "slice"},
    {HTTPD_POST, "/v1/scheduler/filter", serve_filter, BODY_MAX, "filter"},
    {HTTPD_POST, "/v1/scheduler/prioritize", serve_prioritize, BODY_MAX,
     "prioritize"},
};

static int compose(struct canned *c, const char *path, long top)
{
    cleanup_file FILE *f = fopen(path, "re");
    if (!f) {
        perror(path);
        return -1;
    }
    char name[NAME_MAX_BYTES];
    str_add(&c->filter, "{\"Nodes\":null,\"NodeNames\":[");
    str_add(&c->prioritize, "[");
    for (long i = 0; i < top && fscanf(f, "%255s", name) == 1; i++) {
        const char *comma = i ? "," : "";
        str_add(&c->filter, comma);
        str_add_json(&c->filter, name);
        str_addf(&c->prioritize, "%s{\"Host\":", comma);
        str_add_json(&c->prioritize, name);
        str_add(&c->prioritize, ",\"Score\":10}");
    }
    str_add(&c->filter, "],\"FailedNodes\":{},"
                        "\"FailedAndUnresolvableNodes\":{},\"Error\":\"\"}");
    str_add(&c->prioritize, "]");
    return 0;
}

int main(int argc, char **argv)
{
    static struct canned canned = {
        .filter = {.max = BODY_MAX},
        .prioritize = {.max = BODY_MAX},
    };
    long top = argc > 2 ? strtol(argv[2], NULL, 10) : TOP_DEFAULT;
    if (argc < 2 || compose(&canned, argv[1], top)) {
        fputs("usage: bench_canned NAMES-FILE [TOP]\n", stderr);
        return 2;
    }
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGINT);
    sigaddset(&stop, SIGTERM);
    sigprocmask(SIG_BLOCK, &stop, NULL);
    struct httpd_config config = {
        .listen = "127.0.0.1:0",
        .routes = routes,
        .n_routes = ARRAY_LEN(routes),
        .ctx = &canned,
        .threads = 1,
    };
    struct httpd *httpd = NULL;
    struct error err = {0};
    if (httpd_start(&config, &httpd, &err)) {
        fprintf(stderr, "bench_canned: %s\n", err.text);
        return 1;
    }
    printf("%u\n", httpd_port(httpd));
    fflush(stdout);
    int sig = 0;
    sigwait(&stop, &sig);
    httpd_stop(httpd);
    str_fini(&canned.filter);
    str_fini(&canned.prioritize);
    return 0;
}
