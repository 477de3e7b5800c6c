#include "tests/lib/router/remoterig.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "advertiser/act/card/labels.h"
#include "lib/io/clock.h"
#include "router/remote/remote_private.h"
#include "router/wire/fields.h"
#include "tests/lib/card/cardkeys.h"
#include "tests/lib/tmpdir.h"
#include "tests/lib/virtual.h"

/* A probe or a list has a quarter of it, in real time. */
enum { JOINED_LOST_MS = 240000 };

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    (void)fprintf(stderr, "remoterig: %s\n", what);
    abort();
}

static void note_change(void *ctx, struct remote *r,
                        const struct remote_change *c)
{
    struct remoterig *rig = ctx;
    (void)r;
    hold_lock(&rig->lock);
    if (rig->n_changes < REMOTERIG_CHANGES)
        rig->changes[rig->n_changes++] = *c;
}

static void note_health(void *ctx, struct remote *r, enum act_health health)
{
    struct remoterig *rig = ctx;
    (void)r;
    hold_lock(&rig->lock);
    if (rig->n_healths < REMOTERIG_CHANGES)
        rig->healths[rig->n_healths++] = health;
}

static void open_server(struct remoterig *r, bool events)
{
    memset(r, 0, sizeof *r);
    r->dir = tmpdir_create();
    r->socket = xasprintf("%s/s", r->dir);
    r->server = runtimeserver_start(r->socket);
    runtimeserver_events(r->server, events);
}

static void open_keep(struct remoterig *r, const char *state)
{
    const struct keep_config keep = {.dir = state, .pod_logs = "/var/log/pods"};
    struct remote_config *config = &r->config;
    *config = (struct remote_config){.cluster = "c",
                                     .node = "n",
                                     .spared = "biga-helper-",
                                     .changed = note_change,
                                     .health = note_health,
                                     .ctx = r};
    struct error err = {0};
    (void)pthread_mutex_init(&r->lock, NULL);
    must(keep_open(&keep, &r->keep, &err) == 0, err.text);
    config->keep = r->keep;
    config->state = state;
}

static void open_remote(struct remoterig *r, const char *state, int64_t lost_ms)
{
    struct remote_config *config = &r->config;
    struct error err = {0};
    open_keep(r, state);
    config->lost_ms = lost_ms;
    (void)snprintf(config->place.name, sizeof config->place.name, "card-0");
    (void)snprintf(config->place.endpoint, sizeof config->place.endpoint,
                   "unix://%s", r->socket);
    must(remote_start(config, &r->remote, &err) == 0, err.text);
}

static void open_virtual(struct remoterig *r, bool events, bool saved)
{
    virtual_begin();
    open_server(r, events);
    open_remote(r, saved ? r->dir : NULL, 0);
    virtual_settle(REMOTERIG_THREADS);
    must(remote_health(r->remote, NULL) == ACT_READY, "is not ready");
}

void remoterig_open(struct remoterig *r)
{
    open_virtual(r, false, false);
}

void remoterig_open_saved(struct remoterig *r)
{
    open_virtual(r, false, true);
}

void remoterig_open_events(struct remoterig *r)
{
    open_virtual(r, true, false);
}

void remoterig_restart(struct remoterig *r)
{
    struct error err = {0};
    remote_destroy(r->remote);
    must(remote_start(&r->config, &r->remote, &err) == 0, err.text);
}

static void wait_ready(struct remoterig *r)
{
    while (remote_health(r->remote, NULL) != ACT_READY)
        (void)poll(NULL, 0, 1);
}

void remoterig_open_real(struct remoterig *r)
{
    open_server(r, true);
    open_remote(r, NULL, 0);
    wait_ready(r);
}

void remoterig_join(struct remoterig *r, const char *socket, const char *state)
{
    memset(r, 0, sizeof *r);
    r->socket = xstrdup(socket);
    open_remote(r, state, JOINED_LOST_MS);
    wait_ready(r);
}

void remoterig_open_beat(struct remoterig *r, struct remote_beat *beat,
                         int64_t lost_ms, int64_t probe_ms)
{
    struct act_place *place = &r->config.place;
    struct error err = {0};
    uint16_t port;
    memset(r, 0, sizeof *r);
    r->dir = tmpdir_create();
    open_keep(r, NULL);
    cardkeys_write(r->dir, place);
    const struct h2_config config = {
        .cert = place->cert, .key = place->key, .ca = place->ca};
    r->server = runtimeserver_start_tls(&config, &port);
    (void)snprintf(place->name, sizeof place->name, "card-0");
    (void)snprintf(place->endpoint, sizeof place->endpoint,
                   "tcp://127.0.0.1:%u", port);
    r->config.beat = beat;
    r->config.lost_ms = lost_ms;
    r->config.probe_ms = probe_ms;
    must(remote_start(&r->config, &r->remote, &err) == 0, err.text);
    wait_ready(r);
}

void remoterig_close(struct remoterig *r)
{
    remote_destroy(r->remote);
    keep_close(r->keep);
    if (r->server)
        runtimeserver_stop(r->server);
    if (virtual_is_on())
        virtual_end();
    free(r->socket);
    if (r->dir)
        tmpdir_remove(r->dir);
    (void)pthread_mutex_destroy(&r->lock);
}

/* When there is something to do for it.  Who was woken counts as waiting until
 * it runs, and for what it waited for before. */
static int64_t work_due(struct remote *m)
{
    enum remote_verb ignored;
    int64_t dues[3] = {INT64_MAX, INT64_MAX, INT64_MAX};
    hold_lock(&m->lock);
    if (m->stopping)
        return INT64_MAX;
    if (!m->asking) {
        dues[0] = remote_own_due(m, clock_ms(), &ignored);
        dues[1] = remote_beat_due(m, clock_ms(), &ignored);
    }
    if (m->health.now == ACT_READY)
        dues[2] = sweep_due(&m->sweeping);
    for (size_t i = 1; i < ARRAY_LEN(dues); i++)
        dues[0] = dues[i] < dues[0] ? dues[i] : dues[0];
    return dues[0];
}

/* All wait: for the time, or for a server that is frozen; how many for that.
 * The work first: who has some may begin between the two looks. */
static unsigned settle(struct remoterig *r, size_t n, int64_t *ret_next_ms)
{
    for (;;) {
        unsigned held = runtimeserver_held(r->server);
        int64_t now = clock_ms(), due = INT64_MAX;
        for (struct remoterig *at = r; at; at = at->beside) {
            int64_t its = work_due(at->remote);
            due = its < due ? its : due;
        }
        bool idle = held || due > now;
        if (idle && clock_waiting(ret_next_ms) + held >= n) {
            if (due > now && due < *ret_next_ms)
                *ret_next_ms = due;
            return held;
        }
        (void)poll(NULL, 0, 1);
    }
}

void remoterig_pass(struct remoterig *r, size_t others, int64_t ms)
{
    enum { HELD_STEP_MS = 100 };
    int64_t end = clock_ms() + ms, next;
    size_t n = REMOTERIG_THREADS + others;
    unsigned held = settle(r, n, &next);
    while (clock_ms() < end) {
        int64_t left = end - clock_ms(), step = next - clock_ms();
        if (held && step > HELD_STEP_MS)
            step = HELD_STEP_MS;
        virtual_take(step < left ? step : left);
        held = settle(r, n, &next);
    }
}

/* --- calls ---------------------------------------------------------------- */

static void add_labels(struct str *out, uint32_t labels, const char *uid)
{
    proto_add_pair(out, labels, ACT_LABEL_CLUSTER, "c");
    proto_add_pair(out, labels, ACT_LABEL_NODE, "n");
    proto_add_pair(out, labels, ACT_LABEL_UID, uid);
}

static void add_sandbox(struct str *out, const struct kept *what,
                        const char *seal)
{
    size_t config = proto_open(out, CRI_RunPodSandboxRequest_config);
    size_t metadata = proto_open(out, CRI_PodSandboxConfig_metadata);
    proto_add_text(out, CRI_PodSandboxMetadata_name, what->name);
    proto_add_text(out, CRI_PodSandboxMetadata_uid, what->uid);
    proto_add_text(out, CRI_PodSandboxMetadata_namespace, what->namespace);
    proto_add_varint(out, CRI_PodSandboxMetadata_attempt, what->attempt);
    proto_close(out, metadata);
    add_labels(out, CRI_PodSandboxConfig_labels, what->uid);
    if (seal)
        proto_add_pair(out, CRI_PodSandboxConfig_annotations, KEPT_ANNOTATION,
                       seal);
    proto_close(out, config);
}

static void add_container(struct str *out, const struct kept *what,
                          const char *seal)
{
    proto_add_text(out, CRI_CreateContainerRequest_pod_sandbox_id,
                   what->sandbox_id);
    size_t config = proto_open(out, CRI_CreateContainerRequest_config);
    size_t metadata = proto_open(out, CRI_ContainerConfig_metadata);
    proto_add_text(out, CRI_ContainerMetadata_name, what->container);
    proto_add_varint(out, CRI_ContainerMetadata_attempt, what->attempt);
    proto_close(out, metadata);
    add_labels(out, CRI_ContainerConfig_labels, what->uid);
    proto_add_pair(out, CRI_ContainerConfig_annotations, KEPT_ANNOTATION, seal);
    proto_close(out, config);
}

int remoterig_make(struct remoterig *r, const struct kept *what,
                   char ret_id[KEPT_ID_MAX + 1], struct error *err)
{
    cleanup_str struct str seal = STR_INIT(KEPT_SEALED_MAX);
    cleanup_str struct str request = STR_INIT(1 << 20);
    struct grpc_end end;
    bool sandbox = what->kind == KEPT_SANDBOX;
    keep_seal(r->keep, what, &seal);
    if (sandbox)
        add_sandbox(&request, what, str_text(&seal));
    else
        add_container(&request, what, str_text(&seal));
    const struct remote_ask ask = {
        .method = method_get(sandbox ? METHOD_RUN_POD_SANDBOX
                                     : METHOD_CREATE_CONTAINER),
        .request = {str_text(&request), request.size},
        .ms = 10000};
    return remote_make(r->remote, what, &ask, ret_id, &end, err);
}

void remoterig_stray(struct remoterig *r, const char *uid,
                     char ret_id[KEPT_ID_MAX + 1])
{
    cleanup_str struct str request = STR_INIT(1 << 20);
    cleanup_str struct str reply = STR_INIT(1 << 20);
    struct proto_field id;
    struct grpc_end end;
    const struct kept what = {.namespace = "ns", .name = uid, .uid = uid};
    add_sandbox(&request, &what, NULL);
    const struct remote_ask ask = {
        .method = method_get(METHOD_RUN_POD_SANDBOX),
        .request = {str_text(&request), request.size},
        .ms = 10000};
    must(remote_call(r->remote, &ask, &reply, &end, NULL) == 0, "stray");
    must(proto_find((struct proto_bytes){str_text(&reply), reply.size}, 1,
                    PROTO_BYTES, &id, NULL) == 1,
         "stray's id");
    (void)snprintf(ret_id, KEPT_ID_MAX + 1, "%.*s", (int)id.bytes.size,
                   id.bytes.data);
}

int remoterig_call(struct remoterig *r, enum method_id method, const char *id,
                   unsigned ms, struct grpc_end *ret_end, struct error *err)
{
    cleanup_str struct str request = STR_INIT(1024);
    cleanup_str struct str reply = STR_INIT(1 << 20);
    proto_add_text(&request, 1, id);
    const struct remote_ask ask = {
        .method = method_get(method),
        .request = {str_text(&request), request.size},
        .ms = ms};
    return remote_call(r->remote, &ask, &reply, ret_end, err);
}

uint32_t remoterig_status(struct remoterig *r, const char *id)
{
    cleanup_with(remote_view) struct remote_view *v = remote_view(r->remote);
    struct proto_bytes reply = remote_view_status(v, id);
    struct proto_field status, state;
    if (!reply.size)
        return UINT32_MAX;
    must(proto_find(reply, 1, PROTO_BYTES, &status, NULL) == 1, "status");
    return proto_find(status.bytes, 3, PROTO_VARINT, &state, NULL) == 1
               ? (uint32_t)state.value
               : 0;
}
