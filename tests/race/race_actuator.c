/* The actuator on several cards, everything at once, for some seconds, for
 * ThreadSanitizer to watch: pods that are wanted, begun, ended and forgotten by
 * several, cards that are drained, flashed, leave and come back, refuse, freeze,
 * have events or none or too many, containers that end, and those who look on;
 * and an end in the middle of it.  In the end nothing is left on any card but
 * Biga's own.
 *
 *   race_actuator [SECONDS]
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/file.h"
#include "tests/lib/card/actrig.h"
#include "tests/lib/sim/simstate.h"

/* Of "image"; and of something else. */
#define IMAGE_SUM                      \
    "6105d6cc76af400325e94d588ce511be" \
    "5bfdbb73b437dc51eca43917d7a43e3d"
#define OTHER_SUM                      \
    "0123456789abcdef0123456789abcdef" \
    "0123456789abcdef0123456789abcdef"

enum { N_PODS = 12, ROUND_MS = 1500, END_MS = 240000 };

static struct actrig rig;
static char *hooks, *image;
static atomic_bool stopping;
static atomic_ulong n_calls, n_flashes;

static void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "race_actuator: %s: %s\n", what, why);
    abort();
}

static void count(int result)
{
    (void)result; /* refusals are a part of it */
    atomic_fetch_add(&n_calls, 1);
}

/* --- who wants what ------------------------------------------------------- */

static void want_one(uint64_t *random, const char *name)
{
    char place[16], key[16] = "";
    unsigned pod = (unsigned)(sim_random(random) % N_PODS);
    (void)snprintf(place, sizeof place, "card-%u",
                   (unsigned)(sim_random(random) % ACTRIG_CARDS));
    if (pod % 3 == 0)
        (void)snprintf(key, sizeof key, "pair-%u", pod % 4);
    count(actrig_want_as(
        &rig, (struct act_pod){.name = name,
                               .place = place,
                               .pair_key = key,
                               .is_host = pod % 6 == 0,
                               .held = sim_random(random) % 4 == 0,
                               .owner = pod % 2 ? "extender" : "socket"}));
}

static void *wanter(void *arg)
{
    uint64_t random = (uint64_t)(uintptr_t)arg;
    while (!atomic_load(&stopping)) {
        char name[16];
        (void)snprintf(name, sizeof name, "p%u",
                       (unsigned)(sim_random(&random) % N_PODS));
        switch (sim_random(&random) % 6) {
        case 0:
        case 1:
            want_one(&random, name);
            break;
        case 2:
            count(actuator_begin(rig.a, name, NULL));
            break;
        case 3:
        case 4:
            count(actuator_unwant(rig.a, name,
                                  (int64_t)(sim_random(&random) % 2), NULL));
            break;
        default:
            count(actuator_forget(rig.a, name, NULL));
            break;
        }
        (void)usleep(2000);
    }
    return NULL;
}

/* --- what happens to cards ------------------------------------------------ */

static void flash(uint64_t *random, const char *place)
{
    const struct act_flash ask = {.bfb = image,
                                  .sha256 = sim_random(random) % 4 ? IMAGE_SUM
                                                                   : OTHER_SUM,
                                  .version = sim_random(random) % 4 ? "1" : "2",
                                  .timeout_ms = 10000,
                                  .force = sim_random(random) % 8};
    int result = actuator_flash(rig.a, place, &ask, NULL);
    if (result == 0)
        atomic_fetch_add(&n_flashes, 1);
    count(result);
}

static void *operator_run(void *arg)
{
    uint64_t random = (uint64_t)(uintptr_t)arg;
    while (!atomic_load(&stopping)) {
        char place[16];
        (void)snprintf(place, sizeof place, "card-%u",
                       (unsigned)(sim_random(&random) % ACTRIG_CARDS));
        count(actuator_drain(rig.a, place, sim_random(&random) % 2, NULL));
        if (sim_random(&random) % 2)
            flash(&random, place);
        if (sim_random(&random) % 4 == 0)
            actrig_set(&rig, 1 + sim_random(&random) % ACTRIG_CARDS);
        (void)usleep(20000);
    }
    return NULL;
}

static void *nemesis(void *arg)
{
    static const char *const methods[] = {"RunPodSandbox",  "CreateContainer",
                                          "StartContainer", "StopPodSandbox",
                                          "ListContainers", "Version"};
    uint64_t random = (uint64_t)(uintptr_t)arg;
    while (!atomic_load(&stopping)) {
        char name[16];
        struct cardserver *card = rig.cards[sim_random(&random) % ACTRIG_CARDS];
        cardserver_fail(card, methods[sim_random(&random) % ARRAY_LEN(methods)],
                        GRPC_UNAVAILABLE, 1);
        if (sim_random(&random) % 16 == 0)
            cardserver_events(
                card, (enum cardserver_events)(sim_random(&random) % 4));
        (void)snprintf(name, sizeof name, "p%u",
                       (unsigned)(sim_random(&random) % N_PODS));
        count((int)cardserver_exit(card, name));
        if (sim_random(&random) % 8 == 0) {
            cardserver_freeze(card, true);
            (void)usleep(100000);
            cardserver_freeze(card, false);
        }
        (void)usleep(10000);
    }
    return NULL;
}

/* --- who looks on --------------------------------------------------------- */

static void look(uint64_t *random)
{
    static const char *const argv[] = {"ls"};
    const char *const kept[] = {"p1", "p3", "p5"};
    struct act_pod_status *pods = NULL;
    struct act_place_status places[ACT_PLACES_MAX];
    struct act_object *objects = NULL;
    struct cri_exec exec = {0};
    const struct act_log_ask ask = {
        .namespace = "lab", .name = "p2", .container = "a", .max = 100};
    struct act_log log;
    size_t n = 0;
    switch (sim_random(random) % 7) {
    case 0:
        (void)actuator_list(rig.a, &pods);
        break;
    case 1:
        (void)actuator_places(rig.a, places);
        break;
    case 2:
        count(actuator_objects(rig.a, "card-0", &objects, &n, NULL));
        break;
    case 3:
        if (actuator_exec(rig.a, "lab", "p1", "a", argv, 1, 1, &exec, NULL) ==
            0) {
            str_fini(&exec.out);
            str_fini(&exec.err);
        }
        break;
    case 4:
        if (actuator_logs(rig.a, &ask, &log, NULL) == 0)
            str_fini(&log.text);
        break;
    case 5:
        actuator_told(rig.a, kept, sim_random(random) % 4);
        count(actuator_left(rig.a, NULL, "p4", NULL));
        break;
    default:
        count(actuator_keep(rig.a, "extender", kept, 3, NULL));
        break;
    }
    (void)actuator_wait(rig.a, actuator_version(rig.a), 5);
    atomic_fetch_add(&n_calls, 1);
    free(objects);
    free(pods);
}

static void *looker(void *arg)
{
    uint64_t random = (uint64_t)(uintptr_t)arg;
    while (!atomic_load(&stopping))
        look(&random);
    return NULL;
}

/* --- rounds --------------------------------------------------------------- */

static void round_run(uint64_t seed)
{
    static void *(*const all[])(void *) = {wanter, wanter,       wanter,
                                           looker, operator_run, nemesis};
    pthread_t threads[ARRAY_LEN(all)];
    atomic_store(&stopping, false);
    actrig_open(&rig);
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (pthread_create(&threads[i], NULL, all[i],
                           (void *)(uintptr_t)(seed * 100 + i + 1)))
            die("pthread_create", "failed");
    (void)usleep(ROUND_MS * 1000);
    atomic_store(&stopping, true);
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        (void)pthread_join(threads[i], NULL);
    actrig_close(&rig); /* whatever it is at */
}

/* Who is left, for a person. */
static void tell_left(void)
{
    struct act_pod_status *pods = NULL;
    size_t n = actuator_list(rig.a, &pods);
    for (size_t i = 0; i < n; i++)
        if (pods[i].state != ACT_GONE)
            (void)fprintf(stderr, "%s on %s is %s, %s: %s\n", pods[i].name,
                          pods[i].place, act_state_name(pods[i].state),
                          pods[i].reason, pods[i].message);
    for (size_t i = 0; i < ACTRIG_CARDS; i++)
        (void)fprintf(stderr, "card-%zu: %u live\n", i,
                      cardserver_live(rig.cards[i], NULL));
    free(pods);
}

static unsigned n_left(void)
{
    struct act_pod_status *pods = NULL;
    unsigned left = 0;
    size_t n = actuator_list(rig.a, &pods);
    for (size_t i = 0; i < n; i++) {
        left += pods[i].state != ACT_GONE;
        (void)actuator_unwant(rig.a, pods[i].uid, 0, NULL);
    }
    free(pods);
    for (size_t i = 0; i < ACTRIG_CARDS; i++) {
        char uid[32];
        (void)snprintf(uid, sizeof uid, "biga-helper-card-%zu", i);
        left += cardserver_live(rig.cards[i], NULL) -
                cardserver_live(rig.cards[i], uid);
    }
    return left;
}

/* What flashes cards, and with what. */
static void put(const char *path, const char *text)
{
    struct error err = {0};
    if (file_write(path, 0700, text, strlen(text), false, &err) < 0)
        die("file", err.text);
}

static void set_flashes(void)
{
    hooks = xasprintf("%s/hooks", rig.dir);
    image = xasprintf("%s/image", rig.dir);
    cleanup_free char *hook = xasprintf("%s/flash-bfb", hooks);
    if (mkdir(hooks, 0700) < 0)
        die("folder", hooks);
    put(hook, "#!/bin/sh\necho progress 50 writing\necho version 1\n");
    put(image, "image");
    rig.config.hooks_dir = hooks;
    for (size_t i = 0; i < ACTRIG_CARDS; i++)
        (void)snprintf(rig.places[i].pci, sizeof rig.places[i].pci,
                       "0000:%02zx:00.0", i + 1);
}

int main(int argc, char **argv)
{
    unsigned seconds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 3;
    int64_t due = clock_ms() + (int64_t)seconds * 1000;
    actrig_init(&rig, ACTRIG_CARDS);
    rig.config.helper_image = "helper";
    rig.config.orphan_grace_ms = 500;
    set_flashes();
    /* the next one opens what this one has locked */
    rig.config.destroy_ms = END_MS;
    for (uint64_t seed = 1; clock_ms() < due || atomic_load(&n_calls) <= 100 ||
                            atomic_load(&n_flashes) == 0;
         seed++)
        round_run(seed);
    actrig_open(&rig);
    for (size_t i = 0; i < ACTRIG_CARDS; i++)
        (void)actuator_drain(rig.a, rig.places[i].name, false, NULL);
    for (int64_t end = clock_ms() + END_MS; n_left() > 0;) {
        if (clock_ms() > end) {
            tell_left();
            die("the end", "something is left");
        }
        (void)usleep(50000);
    }
    actrig_fini(&rig);
    free(hooks);
    free(image);
    printf("race_actuator: %lu calls, %lu flashes\n", atomic_load(&n_calls),
           atomic_load(&n_flashes));
    return 0;
}
