/* What Biga adds to the start of a pod on a card, beside the same calls made
 * by hand on a connection of their own: image, sandbox, container, start.
 *
 *   bench_actuate start ROUNDS DIR [ENDPOINT IMAGE [CA CERT KEY]]
 *       Start a pod ROUNDS times in either way, in turn, on a simulated card,
 *       or on the one at ENDPOINT, which has IMAGE.  The actuator keeps its
 *       state in DIR.  Prints, in microseconds: of the actuator, from "want"
 *       to "running", p50 and p99; of the calls by hand, the same; what the
 *       former took longer than the latter beside it, p50; then the card's
 *       calls per pod (0: not known) and their p50 together.
 *
 *   bench_actuate serve N DIR
 *       N simulated cards with mutual TLS, which have events, keys in DIR;
 *       prints their ports in one line, and serves until it is killed. */
#include <poll.h>
#include <stdbool.h>

#include "advertiser/act/core/actuator.h"
#include "lib/io/clock.h"
#include "tests/lib/card/cardkeys.h"
#include "tests/lib/card/cardserver.h"

enum {
    ROUNDS_MAX = 10000,
    CALL_MS = 20000,
    START_MS = 60000,
    SETTLE_MS = 100,
    CARDS_MAX = 16
};

#define PLACE "card-0000-17-00"
#define LOGS "/var/lib/biga/bench" /* on the card */

/* What is measured of each round, in microseconds. */
struct round {
    int64_t want, direct, card, adds; /* adds: want - direct */
};

struct bench {
    const char *dir, *image;
    struct act_place place;
    struct cardserver *server; /* NULL: a real one */
    struct cri *direct;
    struct actuator *actuator;
    struct round *rounds;
    unsigned n_calls; /* of the card, for the last pod */
    bool warm;        /* rounds count */
};

static _Noreturn void die(const char *what, const struct error *err)
{
    (void)fprintf(stderr, "bench_actuate: %s: %s\n", what, err->text);
    exit(1);
}

static struct cardserver *serve_one(const struct act_place *place)
{
    const struct h2_config config = {
        .cert = place->cert, .key = place->key, .ca = place->ca};
    return cardserver_start(&config, &cardserver_usual);
}

/* --- by hand ------------------------------------------------------------- */

struct made {
    char sandbox[CRI_ID_MAX + 1], container[CRI_ID_MAX + 1];
};

static int start_by_hand(struct bench *b, unsigned i, struct made *ret_made,
                         struct error *err)
{
    static const char *const command[] = {"sleep", "100000"};
    static const struct cri_pair label = {"bench", "direct"};
    /* as the actuator has the directory of logs made */
    static const struct cri_mount logs = {.container_path = "/var/log/biga",
                                          .host_path = LOGS,
                                          .read_only = true};
    char name[32];
    (void)snprintf(name, sizeof name, "bench-direct-%u", i);
    const struct cri_pairs labels = {&label, 1};
    const struct cri_sandbox_config sandbox = {.namespace = "bench",
                                               .name = name,
                                               .uid = name,
                                               .attempt = 1,
                                               .hostname = "",
                                               .log_directory = LOGS,
                                               .labels = labels,
                                               .runtime_handler = "",
                                               .cgroup_parent = "",
                                               .host_network = true,
                                               .run_as_user = -1};
    const struct cri_container_config container = {.name = "main",
                                                   .image = b->image,
                                                   .attempt = 1,
                                                   .command = command,
                                                   .n_command = 2,
                                                   .working_dir = "",
                                                   .labels = labels,
                                                   .mounts = &logs,
                                                   .n_mounts = 1,
                                                   .log_path = "main.log",
                                                   .cpuset_cpus = "",
                                                   .cpuset_mems = "",
                                                   .run_as_user = -1,
                                                   .run_as_group = -1};
    struct cri_image image;
    int rc = cri_image_status(b->direct, b->image, CALL_MS, &image, err);
    if (rc == 0 && !image.present)
        rc = error_set(err, ENOENT, "there is no image %s", b->image);
    if (rc == 0)
        rc = cri_run_sandbox(b->direct, &sandbox, CALL_MS, ret_made->sandbox,
                             err);
    if (rc == 0)
        rc = cri_create_container(b->direct, ret_made->sandbox, &container,
                                  &sandbox, CALL_MS, ret_made->container, err);
    if (rc == 0)
        rc = cri_start_container(b->direct, ret_made->container, CALL_MS, err);
    return rc;
}

static int64_t direct_round(struct bench *b, unsigned i)
{
    struct made made;
    struct error err = {0};
    int64_t begun = clock_ns();
    if (start_by_hand(b, i, &made, &err) < 0)
        die("by hand", &err);
    int64_t us = (clock_ns() - begun) / 1000;
    if (cri_stop_container(b->direct, made.container, 0, CALL_MS, &err) < 0 ||
        cri_stop_sandbox(b->direct, made.sandbox, CALL_MS, &err) < 0 ||
        cri_remove_sandbox(b->direct, made.sandbox, CALL_MS, &err) < 0)
        die("by hand", &err);
    return us;
}

/* --- by the actuator ----------------------------------------------------- */

static char *pod_text(const struct bench *b, const char *name)
{
    return xasprintf(
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\","
        "\"namespace\":\"bench\",\"uid\":\"%s\"},\"spec\":{"
        "\"restartPolicy\":\"Never\",\"terminationGracePeriodSeconds\":0,"
        "\"hostNetwork\":true,\"containers\":[{\"name\":\"main\",\"image\":"
        "\"%s\",\"imagePullPolicy\":\"IfNotPresent\",\"command\":[\"sleep\","
        "\"100000\"]}]}}",
        name, name, b->image);
}

/* Until the pod is running (or, if not `up`, gone). */
static void await(struct bench *b, const char *name, bool up)
{
    struct act_pod_status view;
    struct error err = {0};
    int64_t end = clock_ms() + START_MS;
    for (uint64_t version = 0;;) {
        int rc = actuator_find(b->actuator, "bench", name, &view);
        if (up ? rc == 0 && view.ready : rc < 0 || view.state == ACT_GONE)
            return;
        if (rc < 0 || (up && view.state == ACT_FAILED) || clock_ms() > end) {
            (void)error_set(&err, ETIMEDOUT, "%s %s %s",
                            rc < 0 ? "lost" : act_state_name(view.state),
                            rc < 0 ? "" : view.reason,
                            rc < 0 ? "" : view.message);
            die(name, &err);
        }
        version = actuator_wait(b->actuator, version, 1000);
    }
}

static void want_round(struct bench *b, unsigned i, struct round *round)
{
    char name[32];
    struct error err = {0};
    int64_t taken_ns = 0;
    (void)snprintf(name, sizeof name, "bench-want-%u", i);
    cleanup_free char *spec = pod_text(b, name);
    const struct act_pod pod = {.namespace = "bench",
                                .name = name,
                                .uid = name,
                                .place = PLACE,
                                .pair_key = "",
                                .spec = spec,
                                .spec_size = strlen(spec),
                                .sriov_vfs = -1,
                                .hook = "",
                                .owner = "bench"};
    if (b->server)
        (void)cardserver_taken(b->server, &taken_ns);
    int64_t begun = clock_ns();
    if (actuator_want(b->actuator, &pod, &err) < 0)
        die(name, &err);
    await(b, name, true);
    round->want = (clock_ns() - begun) / 1000;
    if (b->server)
        b->n_calls = cardserver_taken(b->server, &taken_ns);
    round->card = taken_ns / 1000;
    if (actuator_unwant(b->actuator, name, 0, &err) < 0)
        die(name, &err);
    await(b, name, false);
    (void)actuator_forget(b->actuator, name, &err); /* gone by itself? fine */
}

/* --- figures ------------------------------------------------------------- */

static int order(const void *pa, const void *pb)
{
    int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;
    return (a > b) - (a < b);
}

static int64_t quantile(const struct round *rounds, size_t n, size_t member,
                        unsigned percent)
{
    cleanup_free int64_t *list = xmalloc(n * sizeof *list);
    for (size_t i = 0; i < n; i++)
        memcpy(&list[i], (const char *)&rounds[i] + member, sizeof *list);
    qsort(list, n, sizeof *list, order);
    return list[(n - 1) * percent / 100];
}

/* A runtime still tidies up when it has said that something is gone. */
static void settle(void)
{
    (void)poll(NULL, 0, SETTLE_MS);
}

static void run(struct bench *b, unsigned n)
{
    cleanup_free struct round *rounds = xcalloc(n, sizeof *rounds);
    struct round ignored;
    for (unsigned i = 0; i < 2; i++) { /* connections and caches get warm */
        (void)direct_round(b, n + i);
        want_round(b, n + i, &ignored);
    }
    for (unsigned i = 0; i < n; i++) { /* neither always comes first */
        if (i % 2)
            want_round(b, i, &rounds[i]);
        settle();
        rounds[i].direct = direct_round(b, i);
        settle();
        if (i % 2 == 0)
            want_round(b, i, &rounds[i]);
        rounds[i].adds = rounds[i].want - rounds[i].direct;
    }
    const size_t want = offsetof(struct round, want),
                 direct = offsetof(struct round, direct),
                 card = offsetof(struct round, card),
                 adds = offsetof(struct round, adds);
    printf("%lld\t%lld\t%lld\t%lld\t%lld\t%u\t%lld\n",
           (long long)quantile(rounds, n, want, 50),
           (long long)quantile(rounds, n, want, 99),
           (long long)quantile(rounds, n, direct, 50),
           (long long)quantile(rounds, n, direct, 99),
           (long long)quantile(rounds, n, adds, 50), b->n_calls,
           (long long)quantile(rounds, n, card, 50));
}

/* --- set up -------------------------------------------------------------- */

static void nobody(void *ctx)
{
    (void)ctx;
}

static void connect_to(struct bench *b, struct grpc_config *config)
{
    struct error err = {0};
    *config = (struct grpc_config){.endpoint = b->place.endpoint,
                                   .plaintext = b->place.plaintext};
    if (!b->place.plaintext) {
        config->ca = b->place.ca;
        config->cert = b->place.cert;
        config->key = b->place.key;
    }
    if (cri_create(config, &b->direct, &err) < 0)
        die(b->place.endpoint, &err);
    const struct actuator_config act = {
        .dir = b->dir,
        .cluster = "bench",
        .node = "bench",
        .boot_id = "bench",
        .helper_image = "biga-card:" BIGA_VERSION,
        .changed = nobody};
    if (actuator_create(&act, &b->actuator, &err) < 0 ||
        actuator_set_places(b->actuator, &b->place, 1, &err) < 0)
        die("actuator", &err);
}

static void wait_ready(struct bench *b)
{
    struct act_place_status places[ACT_PLACES_MAX];
    struct error err = {0};
    int64_t end = clock_ms() + START_MS;
    for (uint64_t version = 0;;) {
        size_t n = actuator_places(b->actuator, places);
        if (n > 0 && places[0].health == ACT_READY && places[0].runtime[0])
            return;
        if (clock_ms() > end) {
            (void)error_set(&err, ETIMEDOUT, "%s", n ? places[0].reason : "");
            die(b->place.endpoint, &err);
        }
        version = actuator_wait(b->actuator, version, 100);
    }
}

static int start_main(int argc, char **argv)
{
    struct grpc_config config;
    struct bench b = {.dir = argv[1],
                      .image = argc > 3 ? argv[3] : "busybox:static"};
    struct act_place *p = &b.place;
    unsigned long n = strtoul(argv[0], NULL, 10);
    if (n == 0 || n > ROUNDS_MAX)
        return 2;
    (void)snprintf(p->name, sizeof p->name, PLACE);
    (void)snprintf(p->pci, sizeof p->pci, "0000:17:00.0");
    if (argc == 2) {
        cardkeys_write(b.dir, p);
        b.server = serve_one(p);
        (void)snprintf(p->endpoint, sizeof p->endpoint, "tcp://127.0.0.1:%u",
                       cardserver_port(b.server));
    } else {
        (void)snprintf(p->endpoint, sizeof p->endpoint, "%s", argv[2]);
        p->plaintext = argc < 7;
    }
    if (argc > 6) {
        (void)snprintf(p->ca, sizeof p->ca, "%s", argv[4]);
        (void)snprintf(p->cert, sizeof p->cert, "%s", argv[5]);
        (void)snprintf(p->key, sizeof p->key, "%s", argv[6]);
    }
    connect_to(&b, &config);
    wait_ready(&b);
    run(&b, (unsigned)n);
    actuator_destroy(b.actuator);
    cri_destroy(b.direct);
    if (b.server)
        cardserver_stop(b.server);
    return 0;
}

static int serve_main(char **argv)
{
    struct act_place keys = {0};
    unsigned long n = strtoul(argv[0], NULL, 10);
    if (n == 0 || n > CARDS_MAX)
        return 2;
    cardkeys_write(argv[1], &keys);
    for (unsigned long i = 0; i < n; i++) {
        struct cardserver *s = serve_one(&keys);
        cardserver_events(s, CARDSERVER_EVENTS);
        printf("%s%u", i ? " " : "", cardserver_port(s));
    }
    printf("\n");
    (void)fflush(stdout);
    for (;;)
        (void)pause();
}

int main(int argc, char **argv)
{
    int rc = 2;
    if (argc >= 4 && strcmp(argv[1], "start") == 0)
        rc = start_main(argc - 2, argv + 2);
    else if (argc == 4 && strcmp(argv[1], "serve") == 0)
        rc = serve_main(argv + 2);
    if (rc == 2)
        (void)fputs("usage: bench_actuate start ROUNDS DIR [ENDPOINT IMAGE "
                    "[CA CERT KEY]]\n       bench_actuate serve N DIR\n",
                    stderr);
    return rc;
}
