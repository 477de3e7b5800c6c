/* What biga-cri takes while nothing happens: resident memory, and processor
 * time under the polling of a kubelet, with pods on simulated cards (mutual
 * TLS); beside it the same polling of a runtime that has those pods itself.
 *
 *   bench_router BIGA_CRI [PODS [CARDS [SECONDS [events]]]]    (110 8 60)
 *
 * The kubelet's calls are those of kubelet 1.37 at rest, per minute: 100 lists
 * of containers, 92 of sandboxes, 8 statuses of each container, 12 of Status
 * and of Version, on a connection that stays.  biga-cri has the environment of
 * its unit, deploy/systemd.  Cards have no events, as containerd 1.6, or have
 * them.
 * Prints: KiB of biga-cri; per cent of a core that it took under the polling,
 * that the runtime took which was polled directly, the difference, and what
 * biga-cri took without a kubelet. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "advertiser/act/card/card.h"
#include "advertiser/cri/cri.h"
#include "lib/base/mem.h"
#include "lib/base/proto.h"
#include "lib/io/clock.h"
#include "tests/lib/card/cardkeys.h"
#include "tests/lib/card/cardserver.h"
#include "tests/lib/grpc/rpcclient.h"
#include "tests/lib/tmpdir.h"

#define UNIT "deploy/systemd/biga-cri.service"
#define VARIABLE "Environment="

enum { CALL_MS = 60000, SETTLE_S = 70, CARDS_MAX = 16, PODS_MAX = 200 };

struct bench {
    char *dir;
    unsigned n_pods, n_cards, seconds;
    bool events;
    char containers[PODS_MAX][CRI_ID_MAX + 1];
};

static _Noreturn void die(const char *what, const struct error *err)
{
    (void)fprintf(stderr, "bench_router: %s: %s\n", what, err ? err->text : "");
    exit(1);
}

static char *in_dir(const struct bench *b, const char *name)
{
    return xasprintf("%s/%s", b->dir, name);
}

/* --- processes -------------------------------------------------------------- */

/* One that ends with us. */
static pid_t begin_process(void)
{
    pid_t parent = getpid(), pid = fork();
    if (pid < 0)
        die("fork", NULL);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
    }
    return pid;
}

static int64_t cpu_ns(pid_t pid)
{
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0)
        die("a process has ended", NULL);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static long rss_kib(pid_t pid)
{
    cleanup_free char *path = xasprintf("/proc/%d/status", (int)pid);
    char line[256];
    long kib = -1;
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "VmRSS:", 6) == 0)
            kib = strtol(line + 6, NULL, 10);
    if (f)
        (void)fclose(f);
    return kib;
}

static const struct cardserver_times at_once;
/* A log that is followed brings nothing for as long as the router asks. */
static const struct cardserver_times following = {.follow_waits = true};

static pid_t start_runtime(const char *path)
{
    pid_t pid = begin_process();
    if (pid)
        return pid;
    const struct h2_config config = {.socket = path};
    (void)cardserver_start(&config, &at_once);
    for (;;)
        (void)pause();
}

/* All cards; SIGUSR1: pods are there, and their logs are followed. */
static pid_t start_cards(const struct bench *b, const struct act_place *keys,
                         uint16_t ret_ports[CARDS_MAX])
{
    int ends[2], number;
    sigset_t set;
    struct cardserver *cards[CARDS_MAX];
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGUSR1);
    if (pipe(ends) < 0)
        die("pipe", NULL);
    pid_t pid = begin_process();
    if (pid) {
        size_t size = b->n_cards * sizeof *ret_ports;
        if (read(ends[0], ret_ports, size) != (ssize_t)size)
            die("cards do not start", NULL);
        return pid;
    }
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    for (unsigned i = 0; i < b->n_cards; i++) {
        const struct h2_config config = {
            .cert = keys->cert, .key = keys->key, .ca = keys->ca};
        cards[i] = cardserver_start(&config, &at_once);
        cardserver_exec(cards[i], 0, "z 0\n", "");
        cardserver_events(cards[i],
                          b->events ? CARDSERVER_EVENTS : CARDSERVER_NO_EVENTS);
        ret_ports[i] = cardserver_port(cards[i]);
    }
    if (write(ends[1], ret_ports, b->n_cards * sizeof *ret_ports) < 0)
        _exit(1);
    (void)sigwait(&set, &number);
    for (unsigned i = 0; i < b->n_cards; i++)
        cardserver_take(cards[i], &following);
    for (;;)
        (void)pause();
}

static void write_card_file(const struct bench *b, const char *path,
                            const struct act_place *keys, const uint16_t *ports)
{
    FILE *f = fopen(path, "we");
    if (!f)
        die(path, NULL);
    (void)fputs("{\"cards\":[", f);
    for (unsigned i = 0; i < b->n_cards; i++)
        (void)fprintf(f,
                      "%s{\"match\":{\"pci\":\"0000:%02x:00.0\"},\"endpoint\":"
                      "\"tcp://127.0.0.1:%u\",\"tls\":{\"ca\":\"%s\","
                      "\"cert\":\"%s\",\"key\":\"%s\"}}",
                      i ? "," : "", i + 0x10, ports[i], keys->ca, keys->cert,
                      keys->key);
    (void)fputs("]}\n", f);
    (void)fclose(f);
}

/* What systemd would set. */
static void take_environment(void)
{
    char line[256];
    cleanup_file FILE *f = fopen(UNIT, "re");
    if (!f)
        die(UNIT " is not there: not the repository's folder", NULL);
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, VARIABLE, strlen(VARIABLE)) == 0)
            (void)putenv(xstrdup(line + strlen(VARIABLE)));
    }
}

static pid_t start_router(const struct bench *b, const char *program,
                          const char *listen, const char *home)
{
    const struct {
        const char *word, *value;
    } given[] = {{"--listen=unix://", listen},
                 {"--home=unix://", home},
                 {"--state=", in_dir(b, "state")},
                 {"--kubelet-dir=", in_dir(b, "kubelet")},
                 {"--pod-logs=", in_dir(b, "logs")},
                 {"--card-file=", in_dir(b, "cards.json")},
                 {"--node=", "n1"},
                 {"--log-level=", "error"}};
    char *argv[ARRAY_LEN(given) + 2] = {(char *)(uintptr_t)program};
    for (size_t i = 0; i < ARRAY_LEN(given); i++)
        argv[i + 1] = xasprintf("%s%s", given[i].word, given[i].value);
    pid_t pid = begin_process();
    if (pid)
        return pid;
    take_environment();
    (void)execv(program, argv);
    _exit(127);
}

/* --- the kubelet ------------------------------------------------------------ */

static struct cri *connect_to(const char *path)
{
    static struct grpc_config configs[2];
    static size_t n;
    struct cri *cri = NULL;
    struct error err = {0};
    struct cri_version version;
    configs[n].endpoint = xasprintf("unix://%s", path);
    if (cri_create(&configs[n++], &cri, &err) < 0)
        die(path, &err);
    for (int i = 0; cri_version(cri, 1000, &version, &err) < 0; i++) {
        if (i == 300)
            die(path, &err);
        (void)usleep(100000);
    }
    return cri;
}

static char *allocation_of(const struct bench *b, unsigned i, const char *name,
                           const char *uid)
{
    return xasprintf(
        "{\"pod\":{\"namespace\":\"default\",\"name\":\"%s\",\"uid\":\"%s\","
        "\"role\":\"xpu\"},\"node\":\"n1\",\"cards\":[{\"id\":"
        "\"card-0000-%02x-00\"}],\"need\":{\"cores\":2,\"memoryMiB\":64}}",
        name, uid, i % b->n_cards + 0x10);
}

/* About what a kubelet gives. */
static void start_pod(const struct bench *b, struct cri *cri, unsigned i,
                      char ret_container[CRI_ID_MAX + 1])
{
    cleanup_free char *name = xasprintf("job-worker-%u", i);
    cleanup_free char *uid = xasprintf("5b0f3c1e-7a52-4c0a-9b6f-00000000%04u",
                                       i);
    cleanup_free char *logs = xasprintf("%s/logs/default_%s_%s", b->dir, name,
                                        uid);
    cleanup_free char *allocation = allocation_of(b, i, name, uid);
    const struct cri_pair labels[] = {
        {"io.kubernetes.pod.name", name},
        {"io.kubernetes.pod.namespace", "default"},
        {"io.kubernetes.pod.uid", uid},
        {"io.kubernetes.container.name", "main"}};
    const struct cri_pair notes[] = {
        {"biga.dev/allocation", allocation},
        {"kubernetes.io/config.seen", "2026-01-02T03:04:05.678901234Z"},
        {"kubernetes.io/config.source", "api"}};
    const struct cri_pair about[] = {
        {"io.kubernetes.container.hash", "5d6a0c2b"},
        {"io.kubernetes.container.restartCount", "0"},
        {"io.kubernetes.container.terminationMessagePolicy", "File"},
        {"io.kubernetes.pod.terminationGracePeriod", "30"}};
    const struct cri_sandbox_config sandbox = {
        .namespace = "default",
        .name = name,
        .uid = uid,
        .hostname = name,
        .log_directory = logs,
        .labels = {labels, 3},
        .annotations = {notes, ARRAY_LEN(notes)},
        .runtime_handler = "xpu",
        .cgroup_parent = "/kubepods/besteffort",
        .run_as_user = -1};
    const struct cri_container_config container = {
        .name = "main",
        .image = "docker.io/library/busybox:latest",
        .working_dir = "",
        .labels = {labels, 4},
        .annotations = {about, ARRAY_LEN(about)},
        .log_path = "main/0.log",
        .cpuset_cpus = "",
        .cpuset_mems = "",
        .run_as_user = -1,
        .run_as_group = -1};
    cleanup_free char *log = xasprintf("%s/main", logs);
    char pod[CRI_ID_MAX + 1];
    struct error err = {0};
    (void)mkdir(logs, 0755); /* it is there already for the second runtime */
    (void)mkdir(log, 0755);
    /* a card may not have been heard yet; a kubelet tries again, too */
    for (int k = 0; cri_run_sandbox(cri, &sandbox, CALL_MS, pod, &err) < 0 ||
                    cri_create_container(cri, pod, &container, &sandbox,
                                         CALL_MS, ret_container, &err) < 0 ||
                    cri_start_container(cri, ret_container, CALL_MS, &err) < 0;
         k++) {
        if (k == 50)
            die(name, &err);
        (void)usleep(200000);
    }
}

static size_t fields_in(const struct str *message)
{
    struct proto_reader r;
    struct proto_field f;
    size_t n = 0;
    proto_reader_init(&r,
                      (struct proto_bytes){str_text(message), message->size});
    while (proto_next(&r, &f, NULL) > 0)
        n++;
    return n;
}

static void poll_one(const struct bench *b, struct rpc_client *kubelet,
                     size_t what, unsigned k)
{
    static const char *const methods[] = {"ListContainers", "ListPodSandbox",
                                          "ContainerStatus", "Status",
                                          "Version"};
    cleanup_free char *method = xasprintf("/runtime.v1.RuntimeService/%s",
                                          methods[what]);
    cleanup_str struct str request = STR_INIT(CRI_ID_MAX * 2);
    cleanup_str struct str reply = STR_INIT(STR_MAX_DEFAULT);
    if (what == 2)
        proto_add_text(&request, 1, b->containers[k % b->n_pods]);
    if (rpc_unary(kubelet, method, str_text(&request), request.size, &reply))
        die(method, NULL);
    if (what == 0 && fields_in(&reply) != b->n_pods)
        die("not all containers are listed", NULL);
}

/* Per cent of a core that `pid` takes meanwhile; `path` NULL: nobody polls. */
static double watch(const struct bench *b, const char *path, pid_t pid)
{
    struct rpc_client *kubelet = path ? rpc_open(path) : NULL;
    const unsigned per_minute[] = {100, 92, 8 * b->n_pods, 12, 12};
    unsigned done[ARRAY_LEN(per_minute)] = {0};
    int64_t begun = clock_ms(), used = cpu_ns(pid), end;
    for (end = begun + b->seconds * INT64_C(1000); clock_ms() < end;) {
        int64_t now = clock_ms() - begun;
        for (size_t i = 0; kubelet && i < ARRAY_LEN(done); i++)
            if (done[i] * INT64_C(60000) <= now * per_minute[i])
                poll_one(b, kubelet, i, done[i]++);
        (void)usleep(10000);
    }
    if (kubelet)
        rpc_close(kubelet);
    return (double)(cpu_ns(pid) - used) / (double)(clock_ms() - begun) / 1e4;
}

static void start_pods(struct bench *b, struct cri *cri)
{
    for (unsigned i = 0; i < b->n_pods; i++)
        start_pod(b, cri, i, b->containers[i]);
}

/* --- all of it -------------------------------------------------------------- */

static void run(struct bench *b, const char *program)
{
    cleanup_free char *listen = in_dir(b, "cri.sock");
    cleanup_free char *home = in_dir(b, "home.sock");
    cleanup_free char *file = in_dir(b, "cards.json");
    struct act_place keys = {0};
    uint16_t ports[CARDS_MAX];
    cardkeys_write(b->dir, &keys);
    pid_t cards = start_cards(b, &keys, ports);
    pid_t runtime = start_runtime(home);
    write_card_file(b, file, &keys, ports);
    pid_t router = start_router(b, program, listen, home);
    struct cri *cri = connect_to(listen);
    start_pods(b, cri);
    (void)kill(cards, SIGUSR1);
    (void)sleep(SETTLE_S);
    double polled = watch(b, listen, router);
    long kib = rss_kib(router);
    double alone = watch(b, NULL, router);
    (void)kill(router, SIGKILL);
    struct cri *direct = connect_to(home);
    start_pods(b, direct);
    (void)sleep(1);
    double floor = watch(b, home, runtime);
    printf("%ld\t%.2f\t%.2f\t%.2f\t%.2f\n", kib, polled, floor, polled - floor,
           alone);
    cri_destroy(cri);
    cri_destroy(direct);
    (void)kill(cards, SIGKILL);
    (void)kill(runtime, SIGKILL);
}

static unsigned number(int argc, char **argv, int at, unsigned otherwise,
                       unsigned max)
{
    unsigned long n = at < argc ? strtoul(argv[at], NULL, 10) : otherwise;
    if (n < 1 || n > max)
        die("a number is out of range", NULL);
    return (unsigned)n;
}

int main(int argc, char **argv)
{
    struct bench *b = xcalloc(1, sizeof *b);
    if (argc < 2)
        die("BIGA_CRI [PODS [CARDS [SECONDS [events]]]]", NULL);
    b->n_pods = number(argc, argv, 2, 110, PODS_MAX);
    b->n_cards = number(argc, argv, 3, 8, CARDS_MAX);
    b->seconds = number(argc, argv, 4, 60, 3600);
    b->events = argc > 5 && strcmp(argv[5], "events") == 0;
    b->dir = tmpdir_create();
    run(b, argv[1]);
    tmpdir_remove(b->dir);
    free(b);
    return 0;
}
