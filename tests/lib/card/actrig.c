#include "tests/lib/card/actrig.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "advertiser/act/core/events.h"
#include "advertiser/act/core/state.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "tests/lib/tmpdir.h"
#include "tests/lib/virtual.h"

enum {
    REACH_MS = 60000,
    STEP_MS = 100,
    STRAY_MS = 30000,
};

static const struct cardserver_times quick = {0};

static _Noreturn void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "actrig: %s: %s\n", what, why);
    abort();
}

/* By cards that are frozen; until when the first of them waits. */
static size_t held_calls(struct actrig *r, int64_t *ret_due_ms)
{
    size_t n = 0;
    *ret_due_ms = INT64_MAX;
    for (size_t i = 0; i < r->n; i++) {
        int64_t due_ms;
        n += cardserver_held(r->cards[i], &due_ms);
        if (due_ms < *ret_due_ms)
            *ret_due_ms = due_ms;
    }
    return n;
}

void actrig_init(struct actrig *r, size_t n)
{
    *r = (struct actrig){.dir = tmpdir_create(), .n = n};
    log_set_level(LOG_ERROR);
    for (size_t i = 0; i < n; i++) {
        struct act_place *p = &r->places[i];
        cleanup_free char *path = xasprintf("%s/card-%zu.sock", r->dir, i);
        const struct h2_config config = {.socket = path};
        (void)snprintf(p->name, sizeof p->name, "card-%zu", i);
        (void)snprintf(p->endpoint, sizeof p->endpoint, "unix://%s", path);
        r->cards[i] = cardserver_start(&config, &quick);
    }
    r->config = (struct actuator_config){.dir = xasprintf("%s/state", r->dir),
                                         .cluster = "c",
                                         .node = "h",
                                         .probe_ms = 100,
                                         .lost_ms = 4000};
}

void actrig_tcp(struct actrig *r, size_t i)
{
    const struct h2_config config = {0};
    struct act_place *p = &r->places[i];
    cardserver_stop(r->cards[i]);
    r->cards[i] = cardserver_start(&config, &quick);
    (void)snprintf(p->endpoint, sizeof p->endpoint, "tcp://127.0.0.1:%u",
                   (unsigned)cardserver_port(r->cards[i]));
    p->plaintext = true;
}

void actrig_set(struct actrig *r, size_t n)
{
    struct error err = {0};
    if (actuator_set_places(r->a, r->places, n, &err) < 0)
        die("places", err.text);
}

void actrig_open(struct actrig *r)
{
    struct error err = {0};
    if (actuator_create(&r->config, &r->a, &err) < 0)
        die("actuator", err.text);
    actrig_set(r, r->n);
}

static void *destroy(void *arg)
{
    struct actrig *r = arg;
    actuator_destroy(r->a);
    atomic_store(&r->closed, true);
    return NULL;
}

/* Calls end before it, by their deadlines where a card is frozen. */
static void close_virtual(struct actrig *r)
{
    pthread_t thread;
    atomic_store(&r->closed, false);
    if (pthread_create(&thread, NULL, destroy, r) != 0)
        die("close", "no thread");
    while (!atomic_load(&r->closed)) {
        int64_t due_ms;
        if (held_calls(r, &due_ms) > 0)
            virtual_take(due_ms + 1 - clock_ms());
        (void)poll(NULL, 0, 1);
    }
    (void)pthread_join(thread, NULL);
}

void actrig_close(struct actrig *r)
{
    if (virtual_is_on() && r->a)
        close_virtual(r);
    else
        actuator_destroy(r->a);
    r->a = NULL;
}

void actrig_fini(struct actrig *r)
{
    actrig_close(r);
    for (size_t i = 0; i < r->n; i++)
        cardserver_stop(r->cards[i]);
    free((char *)r->config.dir);
    tmpdir_remove(r->dir);
}

/* --- pods ---------------------------------------------------------------- */

int actrig_want_as(struct actrig *r, struct act_pod pod)
{
    struct error err = {0};
    pod.namespace = pod.namespace ? pod.namespace : "lab";
    cleanup_free char *spec = xasprintf(
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"namespace\":"
        "\"%s\",\"name\":\"%s\",\"uid\":\"%s\"},\"spec\":{\"containers\":[{"
        "\"name\":\"a\",\"image\":\"i\",\"imagePullPolicy\":"
        "\"IfNotPresent\"}]}}",
        pod.namespace, pod.name, pod.uid ? pod.uid : pod.name);
    pod.owner = pod.owner ? pod.owner : "extender";
    pod.uid = pod.uid ? pod.uid : pod.name;
    pod.spec = spec;
    pod.spec_size = strlen(spec);
    pod.sriov_vfs = pod.sriov_vfs ? pod.sriov_vfs : -1;
    return actuator_want(r->a, &pod, &err);
}

int actrig_want(struct actrig *r, const char *name, const char *place)
{
    return actrig_want_as(r, (struct act_pod){.name = name, .place = place});
}

bool actrig_reach(struct actrig *r, const char *name, enum act_state state)
{
    struct act_pod_status v = {0};
    int64_t end = clock_ms() + REACH_MS;
    for (uint64_t version = 0; clock_ms() < end;) {
        if (actuator_find(r->a, "lab", name, &v) == 0 && v.state == state)
            return true;
        if (virtual_is_on())
            actrig_step(r, STEP_MS);
        else
            version = actuator_wait(r->a, version, STEP_MS);
    }
    (void)fprintf(stderr, "actrig: %s is %s (%s: %s)\n", name,
                  act_state_name(v.state), v.reason, v.message);
    return false;
}

bool actrig_live(struct actrig *r, size_t card, const char *uid, unsigned n)
{
    for (int64_t end = clock_ms() + REACH_MS; clock_ms() < end;) {
        if (cardserver_live(r->cards[card], uid) == n)
            return true;
        if (virtual_is_on())
            actrig_step(r, STEP_MS);
        else
            (void)poll(NULL, 0, 10);
    }
    return false;
}

struct act_place_status actrig_place(struct actrig *r, size_t i)
{
    struct act_place_status v[ACT_PLACES_MAX];
    if (actuator_places(r->a, v) <= i)
        die("a place", "is not there");
    return v[i];
}

bool actrig_becomes(struct actrig *r, size_t i, enum act_health health)
{
    for (int64_t end = clock_ms() + REACH_MS; clock_ms() < end;) {
        if (actrig_place(r, i).health == health)
            return true;
        if (virtual_is_on())
            actrig_step(r, STEP_MS);
        else
            (void)poll(NULL, 0, 10);
    }
    return false;
}

/* --- virtual time -------------------------------------------------------- */

/* The thread of events waits for events; it is none of them. */
static bool is_at_rest(struct actrig *r, int64_t *ret_next_ms)
{
    int64_t due_ms;
    size_t n = clock_waiting(ret_next_ms) + held_calls(r, &due_ms);
    if (due_ms < *ret_next_ms)
        *ret_next_ms = due_ms + 1; /* then the call has ended */
    act_lock(r->a);
    bool all = n + r->n_away >= r->a->n_threads - (r->a->events != NULL);
    act_unlock(r->a);
    return all;
}

void actrig_settle(struct actrig *r)
{
    int64_t next_ms;
    while (!is_at_rest(r, &next_ms))
        (void)poll(NULL, 0, 1);
}

void actrig_step(struct actrig *r, int64_t max_ms)
{
    int64_t next_ms, now = clock_ms();
    while (!is_at_rest(r, &next_ms))
        (void)poll(NULL, 0, 1);
    int64_t ms = next_ms > now ? next_ms - now : 0;
    virtual_take(ms < max_ms ? ms : max_ms);
    act_lock(r->a);
    events_wake(r->a);
    act_unlock(r->a);
}

void actrig_pass(struct actrig *r, int64_t ms)
{
    for (int64_t end = clock_ms() + ms; clock_ms() < end;)
        actrig_step(r, end - clock_ms());
    actrig_settle(r);
}

void actrig_stray(struct actrig *r, size_t card, const char *uid)
{
    const struct act_place *p = &r->places[card];
    const struct grpc_config to = {.endpoint = p->endpoint,
                                   .plaintext = p->plaintext};
    const struct cri_pair labels[] = {{"biga.dev/cluster", r->config.cluster},
                                      {"biga.dev/node", r->config.node},
                                      {"biga.dev/pod-uid", uid}};
    const struct cri_sandbox_config config = {.namespace = "lab",
                                              .name = uid,
                                              .uid = uid,
                                              .attempt = 1,
                                              .hostname = "",
                                              .log_directory = "",
                                              .labels = {labels, 3},
                                              .runtime_handler = "",
                                              .cgroup_parent = "",
                                              .run_as_user = -1};
    cleanup_with(cri) struct cri *cri = NULL;
    char id[CRI_ID_MAX + 1];
    struct error err = {0};
    if (cri_create(&to, &cri, &err) < 0 ||
        cri_run_sandbox(cri, &config, STRAY_MS, id, &err) < 0)
        die("a stray sandbox", err.text);
}
