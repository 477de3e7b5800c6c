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
 *   bench_actuate many ROUNDS PODS DIR IMAGE CA CERT KEY ENDPOINT…
 *       Start PODS at once in either way, in turn, spread over the cards at the
 *       endpoints; by hand with as many threads per card as the actuator has,
 *       and with one.  Prints, p50 in microseconds: of the actuator, from the
 *       first "want" until all run; of the calls by hand, with many threads and
 *       with one; and the processor time of this process in each.
 *
 *   bench_actuate serve N DIR
 *       N simulated cards with mutual TLS, which have events, keys in DIR;
 *       prints their ports in one line, and serves until it is killed. */
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#include "advertiser/act/core/actuator.h"
#include "lib/io/clock.h"
#include "tests/lib/card/cardkeys.h"
#include "tests/lib/card/cardserver.h"

enum {
    ROUNDS_MAX = 10000,
    CALL_MS = 20000,
    START_MS = 60000,
    SETTLE_MS = 100,
    CARDS_MAX = 16,
    PODS_MAX = 1024,
    HAND = 3, /* threads per card, as many as the actuator's workers */
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
    unsigned n_calls; /* of the card, for the last pod */
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

static int start_by_hand(struct cri *cri, const char *pod_image,
                         const char *name, struct made *ret_made,
                         struct error *err)
{
    static const char *const command[] = {"sleep", "100000"};
    static const struct cri_pair label = {"bench", "direct"};
    /* as the actuator has the directory of logs made */
    static const struct cri_mount logs = {.container_path = "/var/log/biga",
                                          .host_path = LOGS,
                                          .read_only = true};
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
                                                   .image = pod_image,
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
    int rc = cri_image_status(cri, pod_image, CALL_MS, &image, err);
    if (rc == 0 && !image.present)
        rc = error_set(err, ENOENT, "there is no image %s", pod_image);
    if (rc == 0)
        rc = cri_run_sandbox(cri, &sandbox, CALL_MS, ret_made->sandbox, err);
    if (rc == 0)
        rc = cri_create_container(cri, ret_made->sandbox, &container, &sandbox,
                                  CALL_MS, ret_made->container, err);
    if (rc == 0)
        rc = cri_start_container(cri, ret_made->container, CALL_MS, err);
    return rc;
}

static int end_by_hand(struct cri *cri, const struct made *made,
                       struct error *err)
{
    int rc = cri_stop_container(cri, made->container, 0, CALL_MS, err);
    if (rc == 0)
        rc = cri_stop_sandbox(cri, made->sandbox, CALL_MS, err);
    if (rc == 0)
        rc = cri_remove_sandbox(cri, made->sandbox, CALL_MS, err);
    return rc;
}

static int64_t direct_round(struct bench *b, unsigned i)
{
    struct made made;
    struct error err = {0};
    char name[32];
    (void)snprintf(name, sizeof name, "bench-direct-%u", i);
    int64_t begun = clock_ns();
    if (start_by_hand(b->direct, b->image, name, &made, &err) < 0)
        die("by hand", &err);
    int64_t us = (clock_ns() - begun) / 1000;
    if (end_by_hand(b->direct, &made, &err) < 0)
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

static void want(struct bench *b, const char *name, const char *place)
{
    struct error err = {0};
    cleanup_free char *spec = pod_text(b, name);
    const struct act_pod pod = {.namespace = "bench",
                                .name = name,
                                .uid = name,
                                .place = place,
                                .pair_key = "",
                                .spec = spec,
                                .spec_size = strlen(spec),
                                .sriov_vfs = -1,
                                .hook = "",
                                .owner = "bench"};
    if (actuator_want(b->actuator, &pod, &err) < 0)
        die(name, &err);
}

static void unwant(struct bench *b, const char *name)
{
    struct error err = {0};
    if (actuator_unwant(b->actuator, name, 0, &err) < 0)
        die(name, &err);
}

static void want_round(struct bench *b, unsigned i, struct round *round)
{
    char name[32];
    struct error err = {0};
    int64_t taken_ns = 0;
    (void)snprintf(name, sizeof name, "bench-want-%u", i);
    if (b->server)
        (void)cardserver_taken(b->server, &taken_ns);
    int64_t begun = clock_ns();
    want(b, name, PLACE);
    await(b, name, true);
    round->want = (clock_ns() - begun) / 1000;
    if (b->server)
        b->n_calls = cardserver_taken(b->server, &taken_ns);
    round->card = taken_ns / 1000;
    unwant(b, name);
    await(b, name, false);
    (void)actuator_forget(b->actuator, name, &err); /* gone by itself? fine */
}

/* --- figures ------------------------------------------------------------- */

static int order(const void *pa, const void *pb)
{
    int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;
    return (a > b) - (a < b);
}

/* `rows` are of `size` bytes each. */
static int64_t quantile_of(const void *rows, size_t n, size_t size,
                           size_t member, unsigned percent)
{
    cleanup_free int64_t *list = xmalloc(n * sizeof *list);
    for (size_t i = 0; i < n; i++)
        memcpy(&list[i], (const char *)rows + i * size + member, sizeof *list);
    qsort(list, n, sizeof *list, order);
    return list[(n - 1) * percent / 100];
}

static int64_t quantile(const struct round *rounds, size_t n, size_t member,
                        unsigned percent)
{
    return quantile_of(rounds, n, sizeof *rounds, member, percent);
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

static struct cri *connect_to(const struct act_place *place)
{
    struct error err = {0};
    struct cri *cri = NULL;
    struct grpc_config config = {.endpoint = place->endpoint,
                                 .plaintext = place->plaintext};
    if (!place->plaintext) {
        config.ca = place->ca;
        config.cert = place->cert;
        config.key = place->key;
    }
    if (cri_create(&config, &cri, &err) < 0)
        die(place->endpoint, &err);
    return cri;
}

static struct actuator *actuate(const char *dir, const struct act_place *places,
                                size_t n)
{
    struct error err = {0};
    struct actuator *actuator = NULL;
    const struct actuator_config act = {
        .dir = dir,
        .cluster = "bench",
        .node = "bench",
        .boot_id = "bench",
        .helper_image = "biga-card:" BIGA_VERSION,
        .changed = nobody};
    if (actuator_create(&act, &actuator, &err) < 0 ||
        actuator_set_places(actuator, places, n, &err) < 0)
        die("actuator", &err);
    return actuator;
}

static void wait_ready(struct actuator *actuator)
{
    struct act_place_status places[ACT_PLACES_MAX];
    struct error err = {0};
    int64_t end = clock_ms() + START_MS;
    for (uint64_t version = 0;;) {
        size_t n = actuator_places(actuator, places), n_ready = 0;
        const char *reason = "there is none";
        for (size_t i = 0; i < n; i++) {
            bool ready = places[i].health == ACT_READY && places[i].runtime[0];
            n_ready += ready;
            reason = ready ? reason : places[i].reason;
        }
        if (n > 0 && n_ready == n)
            return;
        if (clock_ms() > end) {
            (void)error_set(&err, ETIMEDOUT, "%s", reason);
            die("cards", &err);
        }
        version = actuator_wait(actuator, version, 100);
    }
}

static void copy(char *to, size_t size, const char *from)
{
    (void)snprintf(to, size, "%s", from);
}

static void take_keys(struct act_place *p, char **keys)
{
    copy(p->ca, sizeof p->ca, keys[0]);
    copy(p->cert, sizeof p->cert, keys[1]);
    copy(p->key, sizeof p->key, keys[2]);
}

static int start_main(int argc, char **argv)
{
    struct bench b = {.dir = argv[1],
                      .image = argc > 3 ? argv[3] : "busybox:static"};
    struct act_place *p = &b.place;
    unsigned long n = strtoul(argv[0], NULL, 10);
    if (n == 0 || n > ROUNDS_MAX)
        return 2;
    copy(p->name, sizeof p->name, PLACE);
    copy(p->pci, sizeof p->pci, "0000:17:00.0");
    if (argc == 2) {
        cardkeys_write(b.dir, p);
        b.server = serve_one(p);
        (void)snprintf(p->endpoint, sizeof p->endpoint, "tcp://127.0.0.1:%u",
                       cardserver_port(b.server));
    } else {
        copy(p->endpoint, sizeof p->endpoint, argv[2]);
        p->plaintext = argc < 7;
    }
    if (argc > 6)
        take_keys(p, argv + 4);
    b.direct = connect_to(p);
    b.actuator = actuate(b.dir, p, 1);
    wait_ready(b.actuator);
    run(&b, (unsigned)n);
    actuator_destroy(b.actuator);
    cri_destroy(b.direct);
    if (b.server)
        cardserver_stop(b.server);
    return 0;
}

/* --- many at once -------------------------------------------------------- */

/* One round, in microseconds; by hand with HAND threads per card, and one. */
struct burst {
    int64_t want, hand, single, want_cpu, hand_cpu, single_cpu;
};

struct many {
    struct bench b; /* its actuator, and its image */
    struct act_place places[CARDS_MAX];
    unsigned n_places, n_pods, round;
};

struct hand {
    const struct many *m;
    const struct act_place *place;
    struct cri *cri;
    struct made *made;
    unsigned first, step; /* its pods */
    pthread_t thread;
};

static int64_t cpu_us(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* it is there */
    return t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void *start_mine(void *arg)
{
    struct hand *h = arg;
    struct error err = {0};
    char name[48];
    for (unsigned i = h->first; i < h->m->n_pods; i += h->step) {
        (void)snprintf(name, sizeof name, "bench-hand-%u-%u", h->m->round, i);
        if (start_by_hand(h->cri, h->m->b.image, name, &h->made[i], &err) < 0)
            die(h->place->endpoint, &err);
    }
    return NULL;
}

static void *end_mine(void *arg)
{
    struct hand *h = arg;
    struct error err = {0};
    for (unsigned i = h->first; i < h->m->n_pods; i += h->step)
        if (end_by_hand(h->cri, &h->made[i], &err) < 0)
            die(h->place->endpoint, &err);
    return NULL;
}

static void each(struct hand *hands, unsigned n, void *(*work)(void *))
{
    for (unsigned i = 0; i < n; i++)
        if (pthread_create(&hands[i].thread, NULL, work, &hands[i]))
            abort();
    for (unsigned i = 0; i < n; i++)
        (void)pthread_join(hands[i].thread, NULL); /* ours, and not detached */
}

/* Pod i is on card i % n_places, as the actuator's is. */
static void burst_by_hand(struct many *m, unsigned threads, int64_t *ret_us,
                          int64_t *ret_cpu)
{
    struct hand hands[CARDS_MAX * HAND];
    const unsigned n = m->n_places * threads;
    cleanup_free struct made *made = xcalloc(m->n_pods, sizeof *made);
    m->round++;
    for (unsigned i = 0; i < n; i++)
        hands[i] = (struct hand){.m = m,
                                 .place = &m->places[i % m->n_places],
                                 .cri = connect_to(&m->places[i % m->n_places]),
                                 .made = made,
                                 .first = i,
                                 .step = n};
    int64_t begun = clock_ns(), cpu = cpu_us();
    each(hands, n, start_mine);
    *ret_us = (clock_ns() - begun) / 1000;
    *ret_cpu = cpu_us() - cpu;
    each(hands, n, end_mine);
    for (unsigned i = 0; i < n; i++)
        cri_destroy(hands[i].cri);
}

static void burst_wanted(struct many *m, int64_t *ret_us, int64_t *ret_cpu)
{
    struct error err = {0};
    char name[48];
    m->round++;
    int64_t begun = clock_ns(), cpu = cpu_us();
    for (unsigned i = 0; i < m->n_pods; i++) {
        (void)snprintf(name, sizeof name, "bench-want-%u-%u", m->round, i);
        want(&m->b, name, m->places[i % m->n_places].name);
    }
    for (int up = 1; up >= 0; up--)
        for (unsigned i = 0; i < m->n_pods; i++) {
            (void)snprintf(name, sizeof name, "bench-want-%u-%u", m->round, i);
            if (up) {
                await(&m->b, name, true);
                *ret_us = (clock_ns() - begun) / 1000;
                *ret_cpu = cpu_us() - cpu;
            } else {
                unwant(&m->b, name);
            }
        }
    for (unsigned i = 0; i < m->n_pods; i++) {
        (void)snprintf(name, sizeof name, "bench-want-%u-%u", m->round, i);
        await(&m->b, name, false);
        (void)actuator_forget(m->b.actuator, name, &err);
    }
}

static void run_bursts(struct many *m, unsigned n)
{
    cleanup_free struct burst *bursts = xcalloc(n + 1, sizeof *bursts);
    static const size_t members[] = {
        offsetof(struct burst, want),     offsetof(struct burst, hand),
        offsetof(struct burst, single),   offsetof(struct burst, want_cpu),
        offsetof(struct burst, hand_cpu), offsetof(struct burst, single_cpu)};
    for (unsigned i = 0; i <= n; i++) /* the first warms up */
        for (unsigned k = 0; k < 3; k++) {
            struct burst *u = &bursts[i];
            settle();
            if ((i + k) % 3 == 0)
                burst_wanted(m, &u->want, &u->want_cpu);
            else if ((i + k) % 3 == 1)
                burst_by_hand(m, HAND, &u->hand, &u->hand_cpu);
            else
                burst_by_hand(m, 1, &u->single, &u->single_cpu);
        }
    for (size_t k = 0; k < ARRAY_LEN(members); k++)
        printf("%s%lld", k ? "\t" : "",
               (long long)quantile_of(bursts + 1, n, sizeof *bursts, members[k],
                                      50));
    printf("\n");
}

static int many_main(int argc, char **argv)
{
    struct many m = {.b.image = argv[3]};
    unsigned long n = strtoul(argv[0], NULL, 10);
    unsigned long pods = strtoul(argv[1], NULL, 10);
    if (n == 0 || n > ROUNDS_MAX || pods == 0 || pods > PODS_MAX ||
        argc - 7 > CARDS_MAX)
        return 2;
    m.n_pods = (unsigned)pods;
    for (char **end = argv + 7; end < argv + argc; end++) {
        struct act_place *p = &m.places[m.n_places];
        (void)snprintf(p->pci, sizeof p->pci, "0000:%02x:00.0", m.n_places);
        (void)snprintf(p->name, sizeof p->name, "card-0000-%02x-00",
                       m.n_places++);
        copy(p->endpoint, sizeof p->endpoint, *end);
        take_keys(p, argv + 4);
    }
    m.b.actuator = actuate(argv[2], m.places, m.n_places);
    wait_ready(m.b.actuator);
    run_bursts(&m, (unsigned)n);
    actuator_destroy(m.b.actuator);
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
    else if (argc > 9 && strcmp(argv[1], "many") == 0)
        rc = many_main(argc - 2, argv + 2);
    else if (argc == 4 && strcmp(argv[1], "serve") == 0)
        rc = serve_main(argv + 2);
    if (rc == 2)
        (void)fputs("usage: bench_actuate start ROUNDS DIR [ENDPOINT IMAGE "
                    "[CA CERT KEY]]\n       bench_actuate many ROUNDS PODS DIR "
                    "IMAGE CA CERT KEY ENDPOINT...\n"
                    "       bench_actuate serve N DIR\n",
                    stderr);
    return rc;
}
