#include "tests/lib/card/cardserver_private.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/base/mem.h"
#include "lib/base/proto.h"
#include "lib/grpc/grpc.h"
#include "lib/io/clock.h"

const struct cardserver_times cardserver_usual = {
    .run_us = 65000,
    .create_us = 40000,
    .start_us = 45000,
    .stop_us = 25000,
    .remove_us = 15000,
    .exec_us = 30000,
    .other_us = 200,
};

/* --- what is there ------------------------------------------------------- */

static void new_id(struct cardserver *s, char ret_id[65])
{
    (void)snprintf(ret_id, 65, "%032x%032x", s->number, ++s->next_id);
}

static struct sandbox *find_sandbox(struct cardserver *s, const char *id)
{
    for (size_t i = 0; i < CARDSERVER_OBJECTS; i++)
        if (s->sandboxes[i].made && strcmp(s->sandboxes[i].id, id) == 0)
            return &s->sandboxes[i];
    return NULL;
}

static struct container *find_container(struct cardserver *s, const char *id)
{
    for (size_t i = 0; i < CARDSERVER_OBJECTS; i++)
        if (s->containers[i].made && strcmp(s->containers[i].id, id) == 0)
            return &s->containers[i];
    return NULL;
}

/* Of a container, while it is there still. */
static void tell(struct cardserver *s, const struct container *k,
                 Cri__ContainerEventType type)
{
    struct event *e = &s->events[s->n_events % EVENTS_KEPT];
    const struct sandbox *b = find_sandbox(s, k->made->pod_sandbox_id);
    if (s->has_events != CARDSERVER_EVENTS)
        return;
    *e = (struct event){.type = type};
    memcpy(e->id, k->id, sizeof e->id);
    if (b && b->made->config->metadata) {
        memcpy(e->sandbox_id, b->id, sizeof e->sandbox_id);
        (void)snprintf(e->uid, sizeof e->uid, "%s",
                       b->made->config->metadata->uid);
    }
    s->n_events++;
    pthread_cond_broadcast(&s->told);
}

void cardserver_container_ends(struct cardserver *s, struct container *k)
{
    bool ran = k->state == CRI__CONTAINER_STATE__CONTAINER_RUNNING;
    k->state = CRI__CONTAINER_STATE__CONTAINER_EXITED;
    if (ran)
        tell(s, k, CRI__CONTAINER_EVENT_TYPE__CONTAINER_STOPPED_EVENT);
}

static void drop_container(struct container *c)
{
    cri__create_container_request__free_unpacked(c->made, NULL);
    c->made = NULL;
}

static void drop_sandbox(struct cardserver *s, struct sandbox *b)
{
    for (size_t i = 0; i < CARDSERVER_OBJECTS; i++)
        if (s->containers[i].made &&
            strcmp(s->containers[i].made->pod_sandbox_id, b->id) == 0)
            drop_container(&s->containers[i]);
    cri__run_pod_sandbox_request__free_unpacked(b->made, NULL);
    b->made = NULL;
}

bool cardserver_has_labels(Cri__Pair **labels, size_t n, Cri__Pair **wanted,
                           size_t n_wanted)
{
    for (size_t i = 0; i < n_wanted; i++) {
        bool found = false;
        for (size_t k = 0; k < n && !found; k++)
            found = strcmp(labels[k]->key, wanted[i]->key) == 0 &&
                    strcmp(labels[k]->value, wanted[i]->value) == 0;
        if (!found)
            return false;
    }
    return true;
}

/* --- calls --------------------------------------------------------------- */

struct call {
    struct cardserver *s;
    const uint8_t *data;
    size_t size;
    struct str *reply;
};

#define PACK(call, type, message)                               \
    do {                                                        \
        size_t size_ = cri__##type##__get_packed_size(message); \
        uint8_t *data_ = xmalloc(size_ + 1);                    \
        str_add_n((call)->reply, (const char *)data_,           \
                  cri__##type##__pack(message, data_));         \
        free(data_);                                            \
    } while (0)

static int call_version(struct call *c)
{
    Cri__VersionResponse m = CRI__VERSION_RESPONSE__INIT;
    m.version = (char *)"0.1.0";
    m.runtime_name = (char *)"simulated";
    m.runtime_version = (char *)"1.0";
    m.runtime_api_version = (char *)"v1";
    PACK(c, version_response, &m);
    return GRPC_OK;
}

static int call_status(struct call *c)
{
    static const char *const types[] = {"RuntimeReady", "NetworkReady"};
    Cri__StatusResponse m = CRI__STATUS_RESPONSE__INIT;
    Cri__RuntimeStatus status = CRI__RUNTIME_STATUS__INIT;
    Cri__RuntimeCondition conditions[2], *list[2];
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        cri__runtime_condition__init(&conditions[i]);
        conditions[i].type = (char *)types[i];
        conditions[i].status = 1;
        list[i] = &conditions[i];
    }
    status.n_conditions = ARRAY_LEN(types);
    status.conditions = list;
    m.status = &status;
    PACK(c, status_response, &m);
    return GRPC_OK;
}

static int call_run(struct call *c)
{
    Cri__RunPodSandboxRequest *request =
        cri__run_pod_sandbox_request__unpack(NULL, c->size, c->data);
    Cri__RunPodSandboxResponse m = CRI__RUN_POD_SANDBOX_RESPONSE__INIT;
    if (!request || !request->config || !request->config->metadata) {
        cri__run_pod_sandbox_request__free_unpacked(request, NULL);
        return GRPC_INVALID_ARGUMENT;
    }
    for (size_t i = 0; i < CARDSERVER_OBJECTS; i++) {
        struct sandbox *b = &c->s->sandboxes[i];
        if (b->made)
            continue;
        b->made = request;
        b->ready = true;
        new_id(c->s, b->id);
        m.pod_sandbox_id = b->id;
        PACK(c, run_pod_sandbox_response, &m);
        return GRPC_OK;
    }
    cri__run_pod_sandbox_request__free_unpacked(request, NULL);
    return GRPC_RESOURCE_EXHAUSTED;
}

static int call_create(struct call *c)
{
    Cri__CreateContainerRequest *request =
        cri__create_container_request__unpack(NULL, c->size, c->data);
    Cri__CreateContainerResponse m = CRI__CREATE_CONTAINER_RESPONSE__INIT;
    bool known = request && request->config && request->config->metadata &&
                 find_sandbox(c->s, request->pod_sandbox_id);
    for (size_t i = 0; known && i < CARDSERVER_OBJECTS; i++) {
        struct container *k = &c->s->containers[i];
        if (k->made)
            continue;
        k->made = request;
        k->state = CRI__CONTAINER_STATE__CONTAINER_CREATED;
        new_id(c->s, k->id);
        m.container_id = k->id;
        PACK(c, create_container_response, &m);
        return GRPC_OK;
    }
    cri__create_container_request__free_unpacked(request, NULL);
    return known ? GRPC_RESOURCE_EXHAUSTED : GRPC_NOT_FOUND;
}

static void fill_container(const struct container *k, Cri__Container *m)
{
    cri__container__init(m);
    m->id = (char *)k->id;
    m->pod_sandbox_id = k->made->pod_sandbox_id;
    m->metadata = k->made->config->metadata;
    m->image = k->made->config->image;
    m->state = k->state;
    m->n_labels = k->made->config->n_labels;
    m->labels = k->made->config->labels;
}

static int call_list_containers(struct call *c)
{
    Cri__ListContainersRequest *request =
        cri__list_containers_request__unpack(NULL, c->size, c->data);
    Cri__ListContainersResponse m = CRI__LIST_CONTAINERS_RESPONSE__INIT;
    Cri__Container list[CARDSERVER_OBJECTS], *pointers[CARDSERVER_OBJECTS];
    Cri__ContainerFilter *filter = request ? request->filter : NULL;
    for (size_t i = 0; i < CARDSERVER_OBJECTS; i++) {
        const struct container *k = &c->s->containers[i];
        if (!k->made ||
            (filter && !cardserver_has_labels(
                           k->made->config->labels, k->made->config->n_labels,
                           filter->label_selector, filter->n_label_selector)))
            continue;
        fill_container(k, &list[m.n_containers]);
        pointers[m.n_containers] = &list[m.n_containers];
        m.n_containers++;
    }
    m.containers = pointers;
    PACK(c, list_containers_response, &m);
    cri__list_containers_request__free_unpacked(request, NULL);
    return GRPC_OK;
}

static int call_list_sandboxes(struct call *c)
{
    Cri__ListPodSandboxRequest *request =
        cri__list_pod_sandbox_request__unpack(NULL, c->size, c->data);
    Cri__ListPodSandboxResponse m = CRI__LIST_POD_SANDBOX_RESPONSE__INIT;
    Cri__PodSandbox list[CARDSERVER_OBJECTS], *pointers[CARDSERVER_OBJECTS];
    Cri__PodSandboxFilter *filter = request ? request->filter : NULL;
    for (size_t i = 0; i < CARDSERVER_OBJECTS; i++) {
        const struct sandbox *b = &c->s->sandboxes[i];
        Cri__PodSandboxConfig *config = b->made ? b->made->config : NULL;
        if (!config ||
            (filter && !cardserver_has_labels(config->labels, config->n_labels,
                                              filter->label_selector,
                                              filter->n_label_selector)))
            continue;
        Cri__PodSandbox *p = &list[m.n_items];
        cri__pod_sandbox__init(p);
        p->id = (char *)b->id;
        p->metadata = config->metadata;
        p->state = b->ready ? CRI__POD_SANDBOX_STATE__SANDBOX_READY
                            : CRI__POD_SANDBOX_STATE__SANDBOX_NOTREADY;
        p->n_labels = config->n_labels;
        p->labels = config->labels;
        pointers[m.n_items++] = p;
    }
    m.items = pointers;
    PACK(c, list_pod_sandbox_response, &m);
    cri__list_pod_sandbox_request__free_unpacked(request, NULL);
    return GRPC_OK;
}

/* Calls that name one object and answer with nothing, but ContainerStatus. */
enum deed { START, STOP, REMOVE, STOP_SANDBOX, REMOVE_SANDBOX, STATUS };

static void container_status(struct call *c, const struct container *k)
{
    Cri__ContainerStatusResponse m = CRI__CONTAINER_STATUS_RESPONSE__INIT;
    Cri__ContainerStatus status = CRI__CONTAINER_STATUS__INIT;
    status.id = (char *)k->id;
    status.metadata = k->made->config->metadata;
    status.image = k->made->config->image;
    status.state = k->state;
    status.started_at = k->state ? 3000000000 : 0;
    if (k->state == CRI__CONTAINER_STATE__CONTAINER_EXITED) {
        status.finished_at = 7000000000;
        status.exit_code = c->s->end_code;
        status.reason = (char *)(c->s->end_code ? "Error" : "Completed");
    }
    status.n_labels = k->made->config->n_labels;
    status.labels = k->made->config->labels;
    m.status = &status;
    PACK(c, container_status_response, &m);
}

static int do_sandbox(struct call *c, const char *id, enum deed deed)
{
    struct sandbox *b = find_sandbox(c->s, id);
    for (size_t i = 0; b && i < CARDSERVER_OBJECTS; i++) {
        struct container *k = &c->s->containers[i];
        if (k->made && strcmp(k->made->pod_sandbox_id, id) == 0)
            cardserver_container_ends(c->s, k);
    }
    if (b && deed == STOP_SANDBOX)
        b->ready = false;
    else if (b)
        drop_sandbox(c->s, b);
    return GRPC_OK;
}

/* StopContainer has its id where the others have theirs. */
static int call_one(struct call *c, enum deed deed)
{
    Cri__IdRequest *request = cri__id_request__unpack(NULL, c->size, c->data);
    const char *id = request ? request->id : "";
    struct container *k = find_container(c->s, id);
    int code = GRPC_OK;
    if (deed == STOP_SANDBOX || deed == REMOVE_SANDBOX)
        code = do_sandbox(c, id, deed);
    else if (!k)
        code = deed == REMOVE ? GRPC_OK : GRPC_NOT_FOUND;
    else if (deed == START)
        k->state = CRI__CONTAINER_STATE__CONTAINER_RUNNING;
    else if (deed == STOP)
        cardserver_container_ends(c->s, k);
    else if (deed == REMOVE) {
        tell(c->s, k, CRI__CONTAINER_EVENT_TYPE__CONTAINER_DELETED_EVENT);
        drop_container(k);
    } else
        container_status(c, k);
    cri__id_request__free_unpacked(request, NULL);
    return code;
}

static int call_start(struct call *c)
{
    return call_one(c, START);
}

static int call_stop(struct call *c)
{
    return call_one(c, STOP);
}

static int call_remove(struct call *c)
{
    return call_one(c, REMOVE);
}

static int call_stop_sandbox(struct call *c)
{
    return call_one(c, STOP_SANDBOX);
}

static int call_remove_sandbox(struct call *c)
{
    return call_one(c, REMOVE_SANDBOX);
}

static int call_container_status(struct call *c)
{
    return call_one(c, STATUS);
}

/* As far as it tells whether it is there: its id. */
static int call_sandbox_status(struct call *c)
{
    Cri__IdRequest *request = cri__id_request__unpack(NULL, c->size, c->data);
    const struct sandbox *b = find_sandbox(c->s, request ? request->id : "");
    cri__id_request__free_unpacked(request, NULL);
    if (!b)
        return GRPC_NOT_FOUND;
    size_t status = proto_open(c->reply, 1);
    proto_add_text(c->reply, 1, b->id);
    proto_close(c->reply, status);
    return GRPC_OK;
}

static int call_exec(struct call *c)
{
    Cri__ExecSyncResponse m = CRI__EXEC_SYNC_RESPONSE__INIT;
    struct cardserver *s = c->s;
    Cri__ExecSyncRequest *request =
        cri__exec_sync_request__unpack(NULL, c->size, c->data);
    m.exit_code = s->exec_code;
    m.stdout_data.data = (uint8_t *)s->exec_out;
    m.stdout_data.len = s->exec_out ? strlen(s->exec_out) : 0;
    m.stderr_data.data = (uint8_t *)s->exec_err;
    m.stderr_data.len = s->exec_err ? strlen(s->exec_err) : 0;
    str_reset(&s->asked);
    for (size_t i = 0; request && i < request->n_cmd; i++)
        str_addf(&s->asked, "%s%s", i ? " " : "", request->cmd[i]);
    bool log = request && s->logs_dir && request->n_cmd >= 5 &&
               (strcmp(request->cmd[1], "log") == 0 ||
                strcmp(request->cmd[1], "lines") == 0);
    if (log)
        cardserver_log(s, request->cmd, request->n_cmd > 5, &m);
    if (request && s->exec_refused && request->n_cmd > 1 &&
        strcmp(request->cmd[1], s->exec_refused) == 0)
        m.exit_code = 1;
    PACK(c, exec_sync_response, &m);
    if (log) {
        free(m.stdout_data.data);
        free(m.stderr_data.data);
    }
    cri__exec_sync_request__free_unpacked(request, NULL);
    return GRPC_OK;
}

static int call_stream_url(struct call *c)
{
    Cri__StreamResponse m = CRI__STREAM_RESPONSE__INIT;
    m.url = c->s->exec_out ? c->s->exec_out : (char *)"";
    PACK(c, stream_response, &m);
    return GRPC_OK;
}

static int call_usage(struct call *c)
{
    cardserver_list_usage(c->s, c->reply);
    return GRPC_OK;
}

static int call_image(struct call *c)
{
    Cri__ImageStatusResponse m = CRI__IMAGE_STATUS_RESPONSE__INIT;
    Cri__Image image = CRI__IMAGE__INIT;
    image.id = (char *)"sha256:1";
    image.size = 1 << 20;
    Cri__Pair info = CRI__PAIR__INIT, *infos = &info;
    info.key = (char *)"info";
    info.value = (char *)"{\"imageSpec\":{\"architecture\":\"arm64\"}}";
    m.image = &image;
    m.info = &infos;
    m.n_info = 1;
    PACK(c, image_status_response, &m);
    return GRPC_OK;
}

static int call_list_images(struct call *c)
{
    cardserver_list_images(c->s, c->reply);
    return GRPC_OK;
}

static int call_remove_image(struct call *c)
{
    cardserver_remove_image(c->s, (const char *)c->data, c->size);
    return GRPC_OK;
}

static int call_pull(struct call *c)
{
    (void)c; /* it has every image */
    return GRPC_OK;
}

static void pack_event(struct call *c, const struct event *e)
{
    Cri__ContainerEventResponse m = CRI__CONTAINER_EVENT_RESPONSE__INIT;
    Cri__PodSandboxStatus status = CRI__POD_SANDBOX_STATUS__INIT;
    Cri__PodSandboxMetadata metadata = CRI__POD_SANDBOX_METADATA__INIT;
    metadata.uid = (char *)e->uid;
    status.id = (char *)e->sandbox_id;
    status.metadata = &metadata;
    m.container_id = (char *)e->id;
    m.container_event_type = e->type;
    m.pod_sandbox_status = e->sandbox_id[0] ? &status : NULL;
    PACK(c, container_event_response, &m);
}

/* Lock held; each connection has one such call at most, and a thread. */
static int call_events(struct call *c)
{
    static _Thread_local bool begun;
    static _Thread_local uint64_t at;
    struct cardserver *s = c->s;
    struct timespec until;
    if (!begun) { /* once for each stream */
        at = s->n_events;
        s->called[cardserver_method(EVENTS)]++;
    }
    if (s->has_events == CARDSERVER_NO_EVENTS)
        return GRPC_UNIMPLEMENTED;
    if (s->ending)
        return GRPC_UNAVAILABLE;
    begun = true;
    if (s->has_events == CARDSERVER_FLOOD && s->n_events > 0) {
        pack_event(c, &s->events[(s->n_events - 1) % EVENTS_KEPT]);
        return H2_MORE;
    }
    if (at == s->n_events || s->has_events == CARDSERVER_MUTE) {
        (void)clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += EVENTS_POLL_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        (void)pthread_cond_timedwait(&s->told, &s->lock, &until);
    }
    if (at < s->n_events && s->has_events == CARDSERVER_EVENTS)
        pack_event(c, &s->events[at++ % EVENTS_KEPT]);
    return H2_MORE;
}

static const struct method {
    const char *name;
    int (*call)(struct call *c);
    size_t time; /* offset in struct cardserver_times */
} methods[METHODS] = {
#define TIME(member) offsetof(struct cardserver_times, member)
    {"Version", call_version, TIME(other_us)},
    {"Status", call_status, TIME(other_us)},
    {"RunPodSandbox", call_run, TIME(run_us)},
    {"StopPodSandbox", call_stop_sandbox, TIME(stop_us)},
    {"RemovePodSandbox", call_remove_sandbox, TIME(remove_us)},
    {"ListPodSandbox", call_list_sandboxes, TIME(other_us)},
    {"CreateContainer", call_create, TIME(create_us)},
    {"StartContainer", call_start, TIME(start_us)},
    {"StopContainer", call_stop, TIME(stop_us)},
    {"RemoveContainer", call_remove, TIME(remove_us)},
    {"ListContainers", call_list_containers, TIME(other_us)},
    {"ContainerStatus", call_container_status, TIME(other_us)},
    {"PodSandboxStatus", call_sandbox_status, TIME(other_us)},
    {"ListContainerStats", call_usage, TIME(other_us)},
    {"ExecSync", call_exec, TIME(exec_us)},
    {"Exec", call_stream_url, TIME(exec_us)},
    {"Attach", call_stream_url, TIME(exec_us)},
    {"PortForward", call_stream_url, TIME(exec_us)},
    {"ImageStatus", call_image, TIME(other_us)},
    {"PullImage", call_pull, TIME(other_us)},
    {"ListImages", call_list_images, TIME(other_us)},
    {"RemoveImage", call_remove_image, TIME(other_us)},
    {EVENTS, call_events, 0},
};

size_t cardserver_method(const char *name)
{
    for (size_t i = 0; i < METHODS; i++)
        if (strcmp(methods[i].name, name) == 0)
            return i;
    return METHODS;
}

/* Lock held. */
static void wait_thawed(struct cardserver *s, size_t at)
{
    unsigned ms = h2_server_deadline_ms();
    struct held me = {s->held, at, ms ? clock_ms() + ms : INT64_MAX};
    struct held **me_at = &s->held;
    s->held = &me;
    while (cardserver_holds(s, at) && !s->ending)
        (void)pthread_cond_wait(&s->thawed, &s->lock);
    while (*me_at != &me)
        me_at = &(*me_at)->next;
    *me_at = me.next;
}

/* Lock held. */
static int answer(struct cardserver *s, size_t at, struct call *c)
{
    if (cardserver_holds(s, at))
        wait_thawed(s, at);
    if (s->faults[at].times == 0)
        return methods[at].call(c);
    int code = s->faults[at].code;
    s->faults[at].times--;
    if (code >= 0)
        return code;
    (void)methods[at].call(c);
    str_reset(c->reply);
    return -code;
}

/* What its biga-card is told to wait for bytes, of which none come. */
static unsigned follow_us(const struct call *c)
{
    Cri__ExecSyncRequest *request =
        cri__exec_sync_request__unpack(NULL, c->size, c->data);
    unsigned us = 0;
    if (request && request->n_cmd > 6 && strcmp(request->cmd[1], "follow") == 0)
        us = 1000 * (unsigned)strtoul(request->cmd[6], NULL, 10);
    cri__exec_sync_request__free_unpacked(request, NULL);
    return us;
}

/* On the thread of its connection. */
static int handle(void *ctx, const char *name, const void *data, size_t size,
                  struct str *ret_reply)
{
    struct cardserver *s = ctx;
    struct call c = {s, data, size, ret_reply};
    size_t at = cardserver_method(name);
    if (at == METHODS)
        return GRPC_UNIMPLEMENTED;
    int64_t begun = clock_ns();
    unsigned us = 0;
    bool call = strcmp(name, EVENTS) != 0; /* and no stream */
    pthread_mutex_lock(&s->lock);
    s->called[at] += call;
    if (call)
        memcpy(&us, (const char *)&s->times + methods[at].time, sizeof us);
    if (methods[at].call == call_exec && s->times.follow_waits)
        us += follow_us(&c);
    pthread_mutex_unlock(&s->lock);
    struct timespec pause = {us / 1000000, (long)(us % 1000000) * 1000};
    (void)nanosleep(&pause, NULL);
    pthread_mutex_lock(&s->lock);
    int code = answer(s, at, &c);
    if (call) {
        s->n_calls++;
        s->taken_ns += clock_ns() - begun;
    }
    pthread_mutex_unlock(&s->lock);
    return code;
}

/* --- the server ---------------------------------------------------------- */

struct cardserver *cardserver_start(const struct h2_config *config,
                                    const struct cardserver_times *times)
{
    /* no two of a process give the same id */
    static atomic_uint n_started;
    struct cardserver *s = xcalloc(1, sizeof *s);
    str_init(&s->asked, 1 << 20);
    struct h2_config with = *config;
    with.handler = handle;
    with.ctx = s;
    s->number = atomic_fetch_add(&n_started, 1);
    s->times = *times;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->thawed, NULL);
    pthread_cond_init(&s->told, NULL);
    s->h2 = h2_server_start(&with);
    return s;
}

void cardserver_stop(struct cardserver *s)
{
    pthread_mutex_lock(&s->lock);
    s->ending = true;
    pthread_cond_broadcast(&s->thawed);
    pthread_cond_broadcast(&s->told);
    pthread_mutex_unlock(&s->lock);
    h2_server_stop(s->h2);
    for (size_t i = 0; i < CARDSERVER_OBJECTS; i++)
        if (s->sandboxes[i].made)
            drop_sandbox(s, &s->sandboxes[i]);
    pthread_cond_destroy(&s->thawed);
    pthread_cond_destroy(&s->told);
    pthread_mutex_destroy(&s->lock);
    free(s->exec_out);
    free(s->exec_err);
    str_fini(&s->asked);
    free(s->logs_dir);
    free(s);
}

uint16_t cardserver_port(const struct cardserver *s)
{
    return h2_server_port(s->h2);
}
