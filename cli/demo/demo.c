/* biga demo - the whole of Biga on one machine: a server, a fleet of hosts
 * that advertise themselves to it, a service on every card, and an MPI+UCC
 * job that is scheduled as kube-scheduler would. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "cli/base/process.h"
#include "cli/demo/demo.h"
#include "cli/demo/demo_fabric.h"
#include "cli/demo/demo_pods.h"
#include "cli/demo/demo_report.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/tree.h"

enum {
    LISTENERS = 3,
    START_MS = 20000,
    FLEET_MS = 60000,
    STEP_MS = 50,
    CALL_MS = 10000,
};

struct demo {
    struct cli *c;
    char *dir;               /* state and logs; removed at the end */
    char *listen[LISTENERS]; /* scheduler, publish, read */
    struct process extender, advertiser;
    struct http_client *read, *scheduler;
    char **names; /* of all nodes */
    struct host *hosts;
    size_t n_hosts;
};

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    fflush(stdout);
}

/* Let at most `ms` pass.  Fails when the user wants to end, or a child has
 * ended, with what it wrote. */
static int wait_step(struct demo *d, int ms, struct error *err)
{
    int sig = signal_wait(ms);
    struct process *children[] = {&d->extender, &d->advertiser};
    if (sig == SIGINT || sig == SIGTERM)
        return error_set(err, EINTR, "interrupted");
    for (size_t i = 0; i < ARRAY_LEN(children); i++) {
        struct process *p = children[i];
        cleanup_str struct str tail = STR_INIT(4096);
        if (!p->name || process_alive(p))
            continue;
        process_tail(p, &tail);
        return error_set(err, ECHILD, "%s has ended; its last words:\n%s",
                         p->name, str_text(&tail));
    }
    return 0;
}

/* --- addresses ------------------------------------------------------------ */

/* Binds 127.0.0.1:port, so that it is not found free once more; the port, or 0
 * when it is taken.  Port 0 gives any free one. */
static unsigned hold_port(unsigned port, int *ret_fd)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)port)};
    socklen_t size = sizeof a;
    int on = 1;
    cleanup_fd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) ||
        bind(fd, (struct sockaddr *)&a, size) || listen(fd, 1) ||
        getsockname(fd, (struct sockaddr *)&a, &size))
        return 0;
    *ret_fd = fd;
    fd = -1;
    return ntohs(a.sin_port);
}

static int choose_held(struct demo *d, int *held, struct error *err)
{
    static const unsigned usual[LISTENERS] = {8701, 8702, 8700};
    const char *asked[LISTENERS] = {d->c->set.scheduler_listen,
                                    d->c->set.publish_listen,
                                    d->c->set.read_listen};
    for (int i = 0; i < LISTENERS; i++) {
        if (asked[i] && *asked[i]) {
            const char *colon = strrchr(asked[i], ':');
            if (colon && colon[1 + strspn(colon + 1, "0")] == '\0')
                return error_set(err, EINVAL,
                                 "\"%s\": name the port, or leave the option "
                                 "out for a free one",
                                 asked[i]);
            d->listen[i] = xstrdup(asked[i]);
            continue;
        }
        unsigned port = hold_port(usual[i], &held[i]);
        if (!port) {
            port = hold_port(0, &held[i]);
            say("Port %u is taken: using %u instead.\n", usual[i], port);
        }
        if (!port)
            return error_set(err, EADDRINUSE, "no free port on 127.0.0.1");
        d->listen[i] = xasprintf("127.0.0.1:%u", port);
    }
    return 0;
}

static int choose_addresses(struct demo *d, struct error *err)
{
    int held[LISTENERS] = {-1, -1, -1};
    int rc = choose_held(d, held, err);
    for (int i = 0; i < LISTENERS; i++)
        if (held[i] >= 0)
            (void)close(held[i]);
    return rc;
}

/* --- the server and the fleet --------------------------------------------- */

static int make_directory(struct demo *d, struct error *err)
{
    const char *tmp = getenv("TMPDIR");
    cleanup_free char *dir = xasprintf("%s/biga-demo-XXXXXX",
                                       tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(dir))
        return error_errno(err, errno, "%s", dir);
    d->dir = steal(&dir);
    return 0;
}

static int connect_to(const char *listen, struct http_client **ret_client,
                      struct error *err)
{
    cleanup_free char *url = xasprintf("http://%s", listen);
    return http_client_create(url, CALL_MS, ret_client, err);
}

/* GET on the read listener; -EAGAIN when the status is not 200. */
static int get(struct demo *d, const char *path, cJSON **ret_json,
               struct error *err)
{
    struct http_answer a = {.body = STR_INIT(STR_MAX_DEFAULT)};
    int rc = http_call(d->read, "GET", path, NULL, 0, NULL, &a, err);
    if (rc == 0 && a.status != 200)
        rc = error_set(err, EAGAIN, "%s: status %ld", path, a.status);
    else if (rc == 0 && ret_json)
        rc = json_parse(str_text(&a.body), a.body.size, ret_json, err);
    str_fini(&a.body);
    return rc;
}

/* The switches that the hosts will hang on, as a file for the extender. */
static int write_fabric(const struct demo *d, const char *path,
                        struct error *err)
{
    cleanup_str struct str text = STR_INIT(STR_MAX_DEFAULT);
    demo_fabric_write((size_t)d->c->set.hosts, &text);
    cleanup_file FILE *f = fopen(path, "we");
    if (!f || fwrite(str_text(&text), 1, text.size, f) != text.size ||
        fflush(f) != 0)
        return error_errno(err, errno, "%s", path);
    return 0;
}

static int start_extender(struct demo *d, struct error *err)
{
    cleanup_free char *path = NULL;
    cleanup_free char *fabric = xasprintf("%s/fabric.json", d->dir);
    cleanup_free char *state = xasprintf("%s/state", d->dir);
    cleanup_free char *log = xasprintf("%s/extender.log", d->dir);
    struct error ignored = {0};
    int rc = process_find("biga-extender", &path, err);
    if (rc < 0 || (rc = write_fabric(d, fabric, err)) < 0)
        return rc;
    char *argv[] = {path,         (char *)"--scheduler-listen",
                    d->listen[0], (char *)"--publish-listen",
                    d->listen[1], (char *)"--read-listen",
                    d->listen[2], (char *)"--state",
                    state,        (char *)"--fabric",
                    fabric,       NULL};
    say("Starting the extender on %s (read),\n  %s (scheduler), %s (publish) …",
        d->listen[2], d->listen[0], d->listen[1]);
    int64_t limit = clock_ms() + START_MS;
    if ((rc = process_start(&d->extender, argv, log, err)) < 0 ||
        (rc = connect_to(d->listen[2], &d->read, err)) < 0 ||
        (rc = connect_to(d->listen[0], &d->scheduler, err)) < 0)
        return rc;
    while (get(d, "/readyz", NULL, &ignored) < 0) {
        if ((rc = wait_step(d, STEP_MS, err)) < 0)
            return rc;
        if (clock_ms() > limit)
            return error_set(err, ETIMEDOUT, "not ready within %d s: %s",
                             START_MS / 1000, ignored.text);
    }
    say(" ready.\n");
    return 0;
}

static size_t count_ready(const cJSON *nodes)
{
    const cJSON *x;
    size_t n = 0;
    cJSON_ArrayForEach(x, json_list(nodes, "items"))
    {
        n += strcmp(json_text(x, "status"), "ready") == 0;
    }
    return n;
}

static void take_names(struct demo *d, const cJSON *nodes)
{
    const cJSON *x;
    d->names =
        xcalloc((size_t)cJSON_GetArraySize(json_list(nodes, "items")) + 1,
                sizeof *d->names);
    cJSON_ArrayForEach(x, json_list(nodes, "items"))
    {
        d->names[d->n_hosts++] = xstrdup(json_text(x, "name"));
    }
}

static int start_fleet(struct demo *d, struct error *err)
{
    cleanup_free char *path = NULL;
    cleanup_free char *log = xasprintf("%s/advertiser.log", d->dir);
    cleanup_free char *count = xasprintf("%" PRId64, d->c->set.hosts);
    cleanup_free char *server = xasprintf("http://%s", d->listen[1]);
    size_t want = (size_t)d->c->set.hosts, ready = 0;
    int rc = process_find("biga-advertiser", &path, err);
    if (rc < 0)
        return rc;
    char *argv[] = {path, (char *)"--fleet", count, (char *)"--server", server,
                    NULL};
    int64_t limit = clock_ms() + FLEET_MS;
    say("Starting a fleet of %zu hosts that advertise themselves …", want);
    if ((rc = process_start(&d->advertiser, argv, log, err)) < 0)
        return rc;
    for (;;) {
        cleanup_with(json) cJSON *nodes = NULL;
        if ((rc = get(d, "/v1/nodes?limit=100000", &nodes, err)) < 0)
            return rc;
        ready = count_ready(nodes);
        if (ready >= want) {
            take_names(d, nodes);
            break;
        }
        if ((rc = wait_step(d, STEP_MS, err)) < 0)
            return rc;
        if (clock_ms() > limit)
            return error_set(err, ETIMEDOUT,
                             "only %zu of %zu hosts ready after %d s", ready,
                             want, FLEET_MS / 1000);
    }
    say(" all ready.\n");
    return 0;
}

static int read_topologies(struct demo *d, struct error *err)
{
    size_t n = d->n_hosts;
    d->hosts = xcalloc(n + 1, sizeof *d->hosts);
    for (size_t i = 0; i < n; i++) {
        cleanup_str struct str path = STR_INIT(4096);
        cleanup_with(json) cJSON *json = NULL;
        str_add(&path, "/v1/topology?node=");
        cli_add_encoded(&path, d->names[i]);
        int rc = get(d, str_text(&path), &json, err);
        if (rc == 0)
            rc = host_read(json, &d->hosts[i], err);
        if (rc < 0)
            return error_wrap(err, "topology of %s", d->names[i]);
    }
    return 0;
}

/* --- scheduling ----------------------------------------------------------- */

static size_t count_kind(const struct host *h, enum device_kind kind)
{
    size_t n = 0;
    for (size_t i = 0; i < h->n; i++)
        n += h->devices[i].kind == kind;
    return n;
}

/* As a DaemonSet's pods: one for each host with a card, and each may go to
 * its own host only. */
static int schedule_service(struct demo *d, struct error *err)
{
    size_t n = 0, refused = 0;
    for (size_t i = 0; i < d->n_hosts; i++) {
        struct pod_spec pod = {.kind = POD_SERVICE, .index = i};
        cleanup_free char *node = NULL;
        if (!count_kind(&d->hosts[i], DEVICE_CARD))
            continue;
        int rc = pod_schedule(d->scheduler, &pod, &d->names[i], 1, &node, err);
        if (rc == -ENOSPC)
            refused++;
        else if (rc < 0)
            return rc;
        else
            n++;
    }
    say("HBN-like service: on a card of %zu hosts", n);
    if (refused)
        say(" (%zu have no card that can hold it)", refused);
    say(".\n");
    return 0;
}

/* Other jobs: on the i-th host with GPUs up to three pods that take a card and
 * a GPU each.  They go to where they have been running, as it were. */
static int schedule_tenants(struct demo *d, struct error *err)
{
    size_t n = 0, n_hosts = 0;
    for (size_t i = 0; i < d->n_hosts; i++) {
        size_t want = i * 5 % 4, got = 0;
        bool full = !count_kind(&d->hosts[i], DEVICE_CARD) ||
                    !count_kind(&d->hosts[i], DEVICE_GPU);
        for (; got < want && !full; got += !full) {
            struct pod_spec pod = {.kind = POD_TENANT, .index = n + got};
            cleanup_free char *node = NULL;
            int rc = pod_schedule(d->scheduler, &pod, &d->names[i], 1, &node,
                                  err);
            if (rc < 0 && rc != -ENOSPC)
                return rc;
            full = rc == -ENOSPC;
        }
        n += got;
        n_hosts += got > 0;
    }
    say("Other jobs: %zu pods with a card and a GPU each, on %zu hosts.\n", n,
        n_hosts);
    return 0;
}

/* One pair; the order in which its pods come does not matter. */
static int schedule_pair(struct demo *d, size_t index, struct error *err)
{
    enum pod_kind kinds[] = {POD_HOST, POD_XPU};
    struct pod_spec pod = {.index = index, .size = (size_t)d->c->set.pairs};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        cleanup_free char *node = NULL;
        pod.kind = kinds[(i + index) % 2];
        int rc = pod_schedule(d->scheduler, &pod, d->names, d->n_hosts, &node,
                              err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int schedule_job(struct demo *d, struct error *err)
{
    size_t pairs = (size_t)d->c->set.pairs;
    int64_t start = clock_ns();
    for (size_t i = 0; i < pairs; i++) {
        int rc = schedule_pair(d, i, err);
        if (rc < 0)
            return rc;
    }
    say("MPI+UCC job \"%s\": %zu host pods and %zu xPU pods bound in %.0f "
        "ms.\n\n",
        DEMO_JOB, pairs, pairs, (double)(clock_ns() - start) / 1e6);
    return 0;
}

/* --- the whole ------------------------------------------------------------ */

static int show(struct demo *d, struct error *err)
{
    cleanup_with(json) cJSON *allocations = NULL, *job = NULL;
    cleanup_str struct str out = STR_INIT(STR_MAX_DEFAULT);
    struct demo_report r;
    int rc = get(d, "/v1/allocations?limit=100000", &allocations, err);
    if (rc < 0 ||
        (rc = get(d, "/v1/jobs/" DEMO_NAMESPACE "/" DEMO_JOB, &job, err)) < 0)
        return rc;
    demo_report_init(&r, d->hosts, d->n_hosts, (size_t)d->c->set.pairs,
                     allocations);
    demo_report_pairs(&r, d->c->colours, &out);
    str_add_c(&out, '\n');
    demo_report_leaves(&r, d->c->colours, &out);
    str_add_c(&out, '\n');
    demo_report_summary(&r, &out);
    str_add_c(&out, '\n');
    demo_report_picture(&r, allocations, d->c->colours, &out);
    str_add_c(&out, '\n');
    bool good = demo_report_check(&r, &out) &&
                demo_report_agrees(&r, job, &out);
    demo_report_fini(&r);
    fwrite(str_text(&out), 1, out.size, stdout);
    fflush(stdout);
    return good ? 0
                : error_set(err, EPROTO,
                            "the job is not placed as well as it could be");
}

static void show_addresses(const struct demo *d)
{
    const char *read = d->listen[2];
    say("Look around:\n"
        "  browser  http://%s/\n"
        "  kubectl  kubectl --server=http://%s get resourceslices\n"
        "  biga     biga --server http://%s nodes | node %s | topo %s\n"
        "           biga --server http://%s allocations | jobs | fabric\n"
        "           biga --server http://%s why " DEMO_NAMESPACE "/" DEMO_JOB
        "-host-0\n"
        "           biga --server http://%s job " DEMO_NAMESPACE "/" DEMO_JOB
        " [--rankfile]\n"
        "  metrics  curl http://%s/metrics\n",
        read, d->listen[1], read, d->names[0], d->names[0], read, read, read,
        read);
}

/* What is shown after it, by somebody else. */
static int run_then(struct demo *d, struct error *err)
{
    struct process then = {0};
    int rc = 0;
    if (!*d->c->set.then)
        return 0;
    cleanup_free char *server = xasprintf("http://%s", d->listen[2]);
    rc = process_introduce(server, err);
    if (rc == 0)
        rc = process_start_shell(&then, d->c->set.then, err);
    while (rc == 0 && process_alive(&then))
        rc = wait_step(d, CALL_MS, err);
    int status = then.status;
    process_stop(&then);
    if (rc == 0 && !(WIFEXITED(status) && WEXITSTATUS(status) == 0))
        rc = error_set(err, EPROTO, "\"%s\" has failed", d->c->set.then);
    return rc;
}

static int run(struct demo *d, struct error *err)
{
    int rc;
    if ((rc = choose_addresses(d, err)) < 0 ||
        (rc = make_directory(d, err)) < 0 ||
        (rc = start_extender(d, err)) < 0 || (rc = start_fleet(d, err)) < 0 ||
        (rc = read_topologies(d, err)) < 0 ||
        (rc = schedule_service(d, err)) < 0 ||
        (rc = schedule_tenants(d, err)) < 0 || (rc = schedule_job(d, err)) < 0)
        return rc;
    rc = show(d, err);
    if (rc == 0)
        rc = run_then(d, err);
    if (d->c->set.once || rc == -EINTR)
        return rc;
    if (rc < 0)
        say("biga: demo: %s\n", err->text);
    show_addresses(d);
    say("Everything stays up until Ctrl-C.\n");
    while ((rc = wait_step(d, -1, err)) == 0)
        ;
    return rc == -EINTR ? 0 : rc;
}

static void demo_fini(struct demo *d)
{
    http_client_destroy(d->read);
    http_client_destroy(d->scheduler);
    process_stop(&d->advertiser);
    process_stop(&d->extender);
    if (d->dir) /* what stays behind is in the temporary directory */
        (void)tree_remove(AT_FDCWD, d->dir, d->dir, NULL);
    for (size_t i = 0; i < d->n_hosts; i++) {
        free(d->names[i]);
        if (d->hosts)
            host_fini(&d->hosts[i]);
    }
    free(d->names);
    free(d->hosts);
    free(d->dir);
    for (int i = 0; i < LISTENERS; i++)
        free(d->listen[i]);
}

int verb_demo(struct cli *c, int argc, char **argv)
{
    struct demo d = {.c = c};
    struct error err = {0};
    (void)argc;
    (void)argv;
    signals_hold();
    int rc = run(&d, &err);
    if (rc < 0)
        fprintf(stderr, "\nbiga: demo: %s\n", err.text);
    demo_fini(&d);
    return rc < 0 ? CLI_FAILED : 0;
}
