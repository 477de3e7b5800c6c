#include "tests/lib/router/runtimeserver.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/proto.h"
#include "lib/grpc/grpc.h"
#include "lib/io/clock.h"
#include "router/wire/fields.h"

enum { METHODS_MAX = 24, EVENTS_KEPT = 256, EVENTS_POLL_MS = 5 };

struct object {
    bool there, sandbox;
    char id[65], sandbox_id[65];
    uint32_t state;
    struct str config; /* PodSandboxConfig or ContainerConfig */
    struct str pod;    /* of a container: its sandbox's */
};
struct method_state {
    char name[40];
    unsigned calls, fails;
    int code;
    bool held;
};
/* A call that waits to be thawed. */
struct held {
    struct held *next;
    const struct method_state *method;
    int64_t due_ms; /* its client gives up */
};
struct runtimeserver {
    struct h2_server *h2;
    struct h2_config config;
    char *socket; /* NULL: TLS */
    pthread_mutex_t lock;
    pthread_cond_t thawed; /* or what happens there, or its end */
    pthread_cond_t left;   /* one of them waits no more */
    struct object objects[RUNTIMESERVER_OBJECTS];
    struct method_state methods[METHODS_MAX];
    size_t n_methods;
    struct held *held;
    unsigned number, next_id; /* of servers in this process, of objects */
    runtimeserver_lie_f *lie;
    void *lie_ctx;
    bool frozen, ending, has_events;
    char events[EVENTS_KEPT][65];
    uint64_t n_events;
};

struct call {
    struct runtimeserver *s;
    struct proto_bytes request;
    struct str *reply;
};

/* --- messages ------------------------------------------------------------- */

static struct proto_bytes field(struct proto_bytes m, uint32_t number)
{
    struct proto_field f;
    return proto_find(m, number, PROTO_BYTES, &f, NULL) == 1
               ? f.bytes
               : (struct proto_bytes){"", 0};
}

static uint64_t number(struct proto_bytes m, uint32_t n)
{
    struct proto_field f;
    return proto_find(m, n, PROTO_VARINT, &f, NULL) == 1 ? f.value : 0;
}

static struct proto_bytes of(const struct str *s)
{
    return (struct proto_bytes){str_text(s), s->size};
}

static bool same(struct proto_bytes a, struct proto_bytes b)
{
    return a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

/* All fields of that number, under another. */
static void copy(struct str *out, struct proto_bytes from, uint32_t number_from,
                 uint32_t number_to)
{
    struct proto_reader r;
    struct proto_field f;
    proto_reader_init(&r, from);
    while (proto_next(&r, &f, NULL) == 1)
        if (f.number == number_from && f.kind == PROTO_BYTES)
            proto_add_bytes(out, number_to, f.bytes);
}

static uint32_t labels_of(const struct object *o)
{
    return o->sandbox ? (uint32_t)CRI_PodSandboxConfig_labels
                      : (uint32_t)CRI_ContainerConfig_labels;
}

static bool passes(const struct object *o, struct proto_bytes filter,
                   uint32_t selector)
{
    struct proto_reader r;
    struct proto_field f;
    proto_reader_init(&r, filter);
    while (proto_next(&r, &f, NULL) == 1) {
        struct proto_bytes key, value, found;
        char name[256];
        if (f.number != selector ||
            proto_read_pair(f.bytes, &key, &value, NULL) < 0)
            continue;
        (void)snprintf(name, sizeof name, "%.*s", (int)key.size, key.data);
        if (proto_find_pair(of(&o->config), labels_of(o), name, &found, NULL) !=
                1 ||
            !same(found, value))
            return false;
    }
    return true;
}

/* --- objects -------------------------------------------------------------- */

static struct object *find(struct runtimeserver *s, struct proto_bytes id)
{
    for (size_t i = 0; i < RUNTIMESERVER_OBJECTS; i++)
        if (s->objects[i].there && proto_equals(id, s->objects[i].id))
            return &s->objects[i];
    return NULL;
}

static struct proto_bytes uid_of(const struct object *o)
{
    const struct str *pod = o->sandbox ? &o->config : &o->pod;
    return field(field(of(pod), CRI_PodSandboxConfig_metadata),
                 CRI_PodSandboxMetadata_uid);
}

/* Of one pod no two of a name and attempt. */
static bool is_reserved(struct runtimeserver *s, const struct object *o)
{
    uint32_t attempt = o->sandbox ? (uint32_t)CRI_PodSandboxMetadata_attempt
                                  : (uint32_t)CRI_ContainerMetadata_attempt;
    struct proto_bytes mine = field(of(&o->config), 1);
    for (size_t i = 0; i < RUNTIMESERVER_OBJECTS; i++) {
        const struct object *k = &s->objects[i];
        struct proto_bytes its = field(of(&k->config), 1);
        if (k != o && k->there && k->sandbox == o->sandbox &&
            same(uid_of(k), uid_of(o)) && same(field(its, 1), field(mine, 1)) &&
            number(its, attempt) == number(mine, attempt))
            return true;
    }
    return false;
}

static void drop(struct object *o)
{
    o->there = false;
    str_fini(&o->config);
    str_fini(&o->pod);
}

static void drop_with(struct runtimeserver *s, struct object *o)
{
    for (size_t i = 0; i < RUNTIMESERVER_OBJECTS; i++)
        if (s->objects[i].there && !s->objects[i].sandbox &&
            strcmp(s->objects[i].sandbox_id, o->id) == 0)
            drop(&s->objects[i]);
    drop(o);
}

/* --- calls ---------------------------------------------------------------- */

static int make(struct call *c, bool sandbox)
{
    struct proto_bytes config = field(c->request, sandbox ? 1 : 2);
    struct object *o = c->s->objects;
    struct object *in = sandbox ? NULL : find(c->s, field(c->request, 1));
    if (!sandbox && !in)
        return GRPC_NOT_FOUND;
    while (o->there)
        if (++o == c->s->objects + RUNTIMESERVER_OBJECTS)
            return GRPC_RESOURCE_EXHAUSTED;
    *o = (struct object){.there = true, .sandbox = sandbox};
    o->config = o->pod = STR_INIT(1 << 20);
    str_add_n(&o->config, config.data, config.size);
    if (in) {
        memcpy(o->sandbox_id, in->id, sizeof o->sandbox_id);
        str_add_n(&o->pod, str_text(&in->config), in->config.size);
    }
    if (is_reserved(c->s, o)) {
        drop(o);
        return GRPC_ALREADY_EXISTS;
    }
    (void)snprintf(o->id, sizeof o->id, "%032x%032x", c->s->number,
                   ++c->s->next_id);
    proto_add_text(c->reply, 1, o->id);
    return GRPC_OK;
}

static int call_run(struct call *c)
{
    return make(c, true);
}

static int call_create(struct call *c)
{
    return make(c, false);
}

static void add_item(struct str *out, const struct object *o)
{
    struct proto_bytes config = of(&o->config);
    size_t at = proto_open(out, 1);
    proto_add_text(out, 1, o->id);
    if (o->sandbox) {
        copy(out, config, CRI_PodSandboxConfig_metadata,
             CRI_PodSandbox_metadata);
        proto_add_varint(out, CRI_PodSandbox_state, o->state);
        copy(out, config, CRI_PodSandboxConfig_labels, CRI_PodSandbox_labels);
        copy(out, config, CRI_PodSandboxConfig_annotations,
             CRI_PodSandbox_annotations);
    } else {
        proto_add_text(out, CRI_Container_pod_sandbox_id, o->sandbox_id);
        copy(out, config, CRI_ContainerConfig_metadata, CRI_Container_metadata);
        proto_add_varint(out, CRI_Container_state, o->state);
        copy(out, config, CRI_ContainerConfig_labels, CRI_Container_labels);
        copy(out, config, CRI_ContainerConfig_annotations,
             CRI_Container_annotations);
    }
    proto_close(out, at);
}

static int list(struct call *c, bool sandboxes, uint32_t selector)
{
    struct proto_bytes filter = field(c->request, 1);
    for (size_t i = 0; i < RUNTIMESERVER_OBJECTS; i++) {
        const struct object *o = &c->s->objects[i];
        if (o->there && o->sandbox == sandboxes && passes(o, filter, selector))
            add_item(c->reply, o);
    }
    return GRPC_OK;
}

static int call_list_sandboxes(struct call *c)
{
    return list(c, true, CRI_PodSandboxFilter_label_selector);
}

static int call_list_containers(struct call *c)
{
    return list(c, false, CRI_ContainerFilter_label_selector);
}

static int call_status(struct call *c)
{
    const struct object *o = find(c->s, field(c->request, 1));
    if (!o)
        return GRPC_NOT_FOUND;
    size_t at = proto_open(c->reply, 1);
    proto_add_text(c->reply, 1, o->id);
    proto_add_varint(c->reply, 3, o->state); /* of both */
    proto_close(c->reply, at);
    return GRPC_OK;
}

static int set_state(struct call *c, uint32_t state)
{
    struct object *o = find(c->s, field(c->request, 1));
    if (!o)
        return GRPC_NOT_FOUND;
    o->state = state;
    return GRPC_OK;
}

static int call_start(struct call *c)
{
    return set_state(c, 1);
}

static int call_stop(struct call *c)
{
    return set_state(c, 2);
}

static int call_stop_sandbox(struct call *c)
{
    return set_state(c, 1);
}

static int call_remove(struct call *c)
{
    struct object *o = find(c->s, field(c->request, 1));
    if (o)
        drop_with(c->s, o);
    return GRPC_OK;
}

static int call_nothing(struct call *c)
{
    (void)c;
    return GRPC_OK;
}

/* Each stream has a thread, and tells what happens after its beginning. */
static int call_events(struct call *c)
{
    static _Thread_local bool begun;
    static _Thread_local uint64_t at;
    struct runtimeserver *s = c->s;
    struct timespec until;
    if (!s->has_events)
        return GRPC_UNIMPLEMENTED;
    if (s->ending)
        return GRPC_UNAVAILABLE;
    if (!begun)
        at = s->n_events;
    begun = true;
    if (at == s->n_events) {
        (void)clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += EVENTS_POLL_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        (void)pthread_cond_timedwait(&s->thawed, &s->lock, &until);
        return H2_MORE;
    }
    proto_add_text(c->reply, 1, s->events[at++ % EVENTS_KEPT]);
    proto_add_varint(c->reply, 2, 2); /* CONTAINER_STOPPED_EVENT */
    return H2_MORE;
}

/* --- the server ----------------------------------------------------------- */

static const struct {
    const char *name;
    int (*call)(struct call *c);
} calls[] = {
    {"Version", call_nothing},
    {"RunPodSandbox", call_run},
    {"CreateContainer", call_create},
    {"ListPodSandbox", call_list_sandboxes},
    {"ListContainers", call_list_containers},
    {"PodSandboxStatus", call_status},
    {"ContainerStatus", call_status},
    {"StartContainer", call_start},
    {"StopContainer", call_stop},
    {"StopPodSandbox", call_stop_sandbox},
    {"RemoveContainer", call_remove},
    {"RemovePodSandbox", call_remove},
    {"ListContainerStats", call_nothing},
    {"GetContainerEvents", call_events},
    {"ExecSync", call_nothing},
    {"Exec", call_nothing},
    {"ImageStatus", call_nothing},
    {"PullImage", call_nothing},
};

/* Lock held. */
static struct method_state *state_of(struct runtimeserver *s, const char *name)
{
    for (size_t i = 0; i < s->n_methods; i++)
        if (strcmp(s->methods[i].name, name) == 0)
            return &s->methods[i];
    if (s->n_methods == METHODS_MAX)
        abort();
    struct method_state *m = &s->methods[s->n_methods++];
    (void)snprintf(m->name, sizeof m->name, "%s", name);
    return m;
}

static void wait_thawed(struct runtimeserver *s, const struct method_state *m)
{
    unsigned ms = h2_server_deadline_ms();
    struct held me = {s->held, m, ms ? clock_ms() + ms : INT64_MAX};
    struct held **at = &s->held;
    s->held = &me;
    while ((s->frozen || m->held) && !s->ending)
        (void)pthread_cond_wait(&s->thawed, &s->lock);
    while (*at != &me)
        at = &(*at)->next;
    *at = me.next;
    pthread_cond_broadcast(&s->left);
}

/* Those that may go on do so: none counts as waiting any more. */
static void thaw(struct runtimeserver *s)
{
    pthread_cond_broadcast(&s->thawed);
    for (const struct held *h = s->held; h && !s->ending;) {
        bool waits = s->frozen || h->method->held;
        if (!waits)
            (void)pthread_cond_wait(&s->left, &s->lock);
        h = waits ? h->next : s->held;
    }
}

static int answer(struct call *c, size_t at, struct method_state *m)
{
    struct runtimeserver *s = c->s;
    if (s->frozen || m->held)
        wait_thawed(s, m);
    if (s->ending)
        return GRPC_UNAVAILABLE;
    if (m->fails == 0)
        return calls[at].call(c);
    m->fails--;
    if (m->code >= 0)
        return m->code;
    (void)calls[at].call(c);
    str_reset(c->reply);
    return -m->code;
}

static int answer_or_lie(struct call *c, size_t at, struct method_state *m)
{
    const struct runtimeserver *s = c->s;
    int code = answer(c, at, m);
    return s->lie && code >= 0
               ? s->lie(s->lie_ctx, calls[at].name, code, c->reply)
               : code;
}

static int handle(void *ctx, const char *name, const void *data, size_t size,
                  struct str *ret_reply)
{
    struct runtimeserver *s = ctx;
    struct call c = {s, {data, size}, ret_reply};
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        if (strcmp(calls[i].name, name) != 0)
            continue;
        hold_lock(&s->lock);
        struct method_state *m = state_of(s, name);
        m->calls++;
        return answer_or_lie(&c, i, m);
    }
    return GRPC_UNIMPLEMENTED;
}

void runtimeserver_up(struct runtimeserver *s)
{
    s->ending = false;
    s->config.handler = handle;
    s->config.ctx = s;
    s->h2 = h2_server_start(&s->config);
}

void runtimeserver_down(struct runtimeserver *s)
{
    pthread_mutex_lock(&s->lock);
    s->ending = true;
    pthread_cond_broadcast(&s->thawed);
    pthread_mutex_unlock(&s->lock);
    s->config.holder = h2_server_leave(s->h2);
    s->h2 = NULL;
    if (s->socket)
        (void)remove(s->socket);
}

static struct runtimeserver *start(const struct h2_config *config)
{
    static atomic_uint n_servers;
    struct runtimeserver *s = xcalloc(1, sizeof *s);
    s->number = atomic_fetch_add(&n_servers, 1);
    s->socket = config->socket ? xstrdup(config->socket) : NULL;
    s->config = *config;
    s->config.socket = s->socket;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->thawed, NULL);
    pthread_cond_init(&s->left, NULL);
    runtimeserver_up(s);
    return s;
}

struct runtimeserver *runtimeserver_start(const char *socket)
{
    const struct h2_config config = {.socket = socket};
    return start(&config);
}

struct runtimeserver *runtimeserver_start_tls(const struct h2_config *config,
                                              uint16_t *ret_port)
{
    struct runtimeserver *s = start(config);
    *ret_port = h2_server_port(s->h2);
    return s;
}

void runtimeserver_stop(struct runtimeserver *s)
{
    if (s->h2)
        runtimeserver_down(s);
    (void)close(s->config.holder); /* -1 allowed */
    for (size_t i = 0; i < RUNTIMESERVER_OBJECTS; i++)
        if (s->objects[i].there)
            drop(&s->objects[i]);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->thawed);
    pthread_cond_destroy(&s->left);
    free(s->socket);
    free(s);
}

/* --- what the tests say --------------------------------------------------- */

void runtimeserver_freeze(struct runtimeserver *s, bool frozen)
{
    hold_lock(&s->lock);
    s->frozen = frozen;
    thaw(s);
}

void runtimeserver_hold(struct runtimeserver *s, const char *method, bool held)
{
    hold_lock(&s->lock);
    state_of(s, method)->held = held;
    thaw(s);
}

unsigned runtimeserver_held(struct runtimeserver *s)
{
    unsigned n = 0;
    hold_lock(&s->lock);
    for (const struct held *h = s->held; h; h = h->next)
        n += h->due_ms >= clock_ms(); /* then it is not late yet */
    return n;
}

void runtimeserver_fail(struct runtimeserver *s, const char *method, int code,
                        unsigned times)
{
    hold_lock(&s->lock);
    struct method_state *m = state_of(s, method);
    m->code = code;
    m->fails = times;
}

unsigned runtimeserver_calls(struct runtimeserver *s, const char *method)
{
    hold_lock(&s->lock);
    return state_of(s, method)->calls;
}

void runtimeserver_lie(struct runtimeserver *s, runtimeserver_lie_f *lie,
                       void *ctx)
{
    hold_lock(&s->lock);
    s->lie = lie;
    s->lie_ctx = ctx;
}

void runtimeserver_fault(struct runtimeserver *s, enum h2_fault fault)
{
    h2_server_fault(s->h2, fault);
}

void runtimeserver_events(struct runtimeserver *s, bool has)
{
    hold_lock(&s->lock);
    s->has_events = has;
}

unsigned runtimeserver_count(struct runtimeserver *s, const char *uid)
{
    unsigned n = 0;
    hold_lock(&s->lock);
    for (size_t i = 0; i < RUNTIMESERVER_OBJECTS; i++)
        n += s->objects[i].there &&
             (!uid || proto_equals(uid_of(&s->objects[i]), uid));
    return n;
}

void runtimeserver_set(struct runtimeserver *s, const char *id, uint32_t state,
                       bool told)
{
    hold_lock(&s->lock);
    struct object *o = find(s, (struct proto_bytes){id, strlen(id)});
    if (!o)
        abort();
    o->state = state;
    if (!told)
        return;
    (void)snprintf(s->events[s->n_events++ % EVENTS_KEPT], 65, "%s", id);
    pthread_cond_broadcast(&s->thawed);
}

void runtimeserver_remove(struct runtimeserver *s, const char *id)
{
    hold_lock(&s->lock);
    struct object *o = find(s, (struct proto_bytes){id, strlen(id)});
    if (o)
        drop_with(s, o);
}
