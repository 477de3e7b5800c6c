/* What tests look at of a card's runtime, and change. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "card/card.h"
#include "lib/base/mem.h"
#include "lib/base/proto.h"
#include "lib/io/clock.h"
#include "tests/lib/card/cardserver_private.h"

static bool is_of(Cri__Pair **labels, size_t n, const char *uid)
{
    Cri__Pair pair = CRI__PAIR__INIT, *wanted = &pair;
    pair.key = (char *)"biga.dev/pod-uid";
    pair.value = (char *)uid;
    return !uid || cardserver_has_labels(labels, n, &wanted, 1);
}

unsigned cardserver_live(struct cardserver *s, const char *uid)
{
    unsigned n = 0;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < CARDSERVER_OBJECTS; i++) {
        const struct sandbox *b = &s->sandboxes[i];
        const struct container *k = &s->containers[i];
        n += b->made && b->ready &&
             is_of(b->made->config->labels, b->made->config->n_labels, uid);
        n += k->made && k->state == CRI__CONTAINER_STATE__CONTAINER_RUNNING &&
             is_of(k->made->config->labels, k->made->config->n_labels, uid);
    }
    pthread_mutex_unlock(&s->lock);
    return n;
}

static const Cri__ContainerConfig *newest(const struct cardserver *s,
                                          const char *uid)
{
    const struct container *found = NULL;
    for (size_t i = 0; i < CARDSERVER_OBJECTS; i++) {
        const struct container *k = &s->containers[i];
        if (k->made && (!found || strcmp(k->id, found->id) > 0) &&
            is_of(k->made->config->labels, k->made->config->n_labels, uid))
            found = k;
    }
    return found ? found->made->config : NULL;
}

void cardserver_env(struct cardserver *s, const char *key, char *ret_value,
                    size_t size)
{
    ret_value[0] = '\0';
    hold_lock(&s->lock);
    const Cri__ContainerConfig *c = newest(s, NULL);
    for (size_t i = 0; c && i < c->n_envs; i++)
        if (strcmp(c->envs[i]->key, key) == 0)
            (void)snprintf(ret_value, size, "%s", c->envs[i]->value);
}

static void add_device(const Cri__Device *d, struct str *out)
{
    str_add(out, d->host_path);
    if (strcmp(d->host_path, d->container_path) != 0)
        str_addf(out, " as %s", d->container_path);
    str_addf(out, " %s\n", d->permissions);
}

static void add_linux(const Cri__LinuxContainerConfig *l, struct str *out)
{
    const Cri__Capability *c = l->security_context->capabilities;
    const Cri__LinuxContainerResources *r = l->resources;
    for (size_t i = 0; i < c->n_add_capabilities; i++)
        str_addf(out, "capability %s\n", c->add_capabilities[i]);
    for (size_t i = 0; i < r->n_hugepage_limits; i++)
        str_addf(out, "hugepages %s %" PRIu64 "\n",
                 r->hugepage_limits[i]->page_size,
                 r->hugepage_limits[i]->limit);
}

void cardserver_given(struct cardserver *s, const char *uid, struct str *out)
{
    hold_lock(&s->lock);
    const Cri__ContainerConfig *c = newest(s, uid);
    for (size_t i = 0; c && i < c->n_devices; i++)
        add_device(c->devices[i], out);
    if (c && c->linux_config)
        add_linux(c->linux_config, out);
    for (size_t i = 0; c && i < c->n_mounts; i++)
        if (strncmp(c->mounts[i]->host_path, "/dev/", 5) == 0)
            str_addf(out, "%s from %s\n", c->mounts[i]->container_path,
                     c->mounts[i]->host_path);
}

void cardserver_take(struct cardserver *s, const struct cardserver_times *times)
{
    pthread_mutex_lock(&s->lock);
    s->times = *times;
    pthread_mutex_unlock(&s->lock);
}

/* A test that names another has not read what there is. */
static size_t known(const struct cardserver *s, const char *method)
{
    size_t at = cardserver_method(method);
    if (at >= ARRAY_LEN(s->called))
        abort();
    return at;
}

unsigned cardserver_calls(struct cardserver *s, const char *method)
{
    size_t at = known(s, method);
    pthread_mutex_lock(&s->lock);
    unsigned n = s->called[at];
    pthread_mutex_unlock(&s->lock);
    return n;
}

void cardserver_fail(struct cardserver *s, const char *method, int code,
                     unsigned times)
{
    size_t at = known(s, method);
    pthread_mutex_lock(&s->lock);
    s->faults[at].code = code;
    s->faults[at].times = times;
    pthread_mutex_unlock(&s->lock);
}

void cardserver_freeze(struct cardserver *s, bool frozen)
{
    pthread_mutex_lock(&s->lock);
    s->frozen = frozen;
    pthread_cond_broadcast(&s->thawed);
    pthread_mutex_unlock(&s->lock);
}

void cardserver_hold(struct cardserver *s, const char *method, bool held)
{
    pthread_mutex_lock(&s->lock);
    s->stuck[cardserver_method(method)] = held;
    pthread_cond_broadcast(&s->thawed);
    pthread_mutex_unlock(&s->lock);
}

unsigned cardserver_held(struct cardserver *s, int64_t *ret_due_ms)
{
    unsigned n = 0;
    int64_t now = clock_ms();
    *ret_due_ms = INT64_MAX;
    pthread_mutex_lock(&s->lock);
    for (const struct held *h = s->held; h; h = h->next) {
        if (!cardserver_holds(s, h->method) || h->due_ms < now ||
            h->due_ms == INT64_MAX)
            continue;
        n++;
        if (h->due_ms < *ret_due_ms)
            *ret_due_ms = h->due_ms;
    }
    pthread_mutex_unlock(&s->lock);
    return n;
}

void cardserver_exec(struct cardserver *s, int exit_code, const char *out,
                     const char *err)
{
    pthread_mutex_lock(&s->lock);
    free(s->exec_out);
    free(s->exec_err);
    s->exec_code = exit_code;
    s->exec_out = xstrdup(out);
    s->exec_err = xstrdup(err);
    pthread_mutex_unlock(&s->lock);
}

void cardserver_asked(struct cardserver *s, struct str *out)
{
    hold_lock(&s->lock);
    str_add(out, str_text(&s->asked));
}

void cardserver_exec_refuse(struct cardserver *s, const char *word)
{
    hold_lock(&s->lock);
    s->exec_refused = word;
}

void cardserver_logs(struct cardserver *s, const char *dir)
{
    pthread_mutex_lock(&s->lock);
    free(s->logs_dir);
    s->logs_dir = dir ? xstrdup(dir) : NULL;
    s->logs_max = CARD_LOG_MAX;
    pthread_mutex_unlock(&s->lock);
}

void cardserver_logs_max(struct cardserver *s, size_t max)
{
    pthread_mutex_lock(&s->lock);
    s->logs_max = max;
    pthread_mutex_unlock(&s->lock);
}

static void answer_log(const char *path, char **cmd, bool ended, int fd,
                       Cri__ExecSyncResponse *m, char **ret_said)
{
    struct card_given given;
    struct error err;
    const struct lines_ask ask = {.offset = strtoull(cmd[3], NULL, 10),
                                  .max = strtoull(cmd[4], NULL, 10),
                                  .tail = strcmp(cmd[3], "end") == 0,
                                  .ended = ended};
    int rc = strcmp(cmd[1], "lines") == 0
                 ? card_lines(path, &ask, fd, &given, &err)
                 : card_log(path, ask.offset, ask.max, fd, &given, &err);
    if (rc < 0) {
        m->exit_code = rc == -ENOENT ? 3 : 1;
        *ret_said = xasprintf("biga-card: %s\n", err.text);
        return;
    }
    m->exit_code = 0;
    m->stdout_data.len = given.size;
    m->stdout_data.data = xmalloc(given.size + 1);
    if (pread(fd, m->stdout_data.data, given.size, 0) != (ssize_t)given.size)
        abort();
    *ret_said = xasprintf("bytes=%zu\nnext=%" PRIu64 "\n", given.size,
                          given.next);
}

void cardserver_log(struct cardserver *s, char **cmd, bool ended,
                    Cri__ExecSyncResponse *m)
{
    const char *name = strrchr(cmd[2], '/');
    cleanup_free char *path = xasprintf("%s%s", s->logs_dir, name ? name : "/");
    cleanup_fd int fd = memfd_create("log", MFD_CLOEXEC);
    char *said = NULL;
    m->stdout_data = (ProtobufCBinaryData){0};
    if (fd < 0)
        abort();
    if (strtoull(cmd[4], NULL, 10) > s->logs_max) {
        m->exit_code = 2;
        said = xstrdup("usage: biga-card wait\n");
    } else {
        answer_log(path, cmd, ended, fd, m, &said);
    }
    m->stderr_data.data = (uint8_t *)said;
    m->stderr_data.len = strlen(said);
}

void cardserver_events(struct cardserver *s, enum cardserver_events events)
{
    pthread_mutex_lock(&s->lock);
    s->has_events = events;
    pthread_mutex_unlock(&s->lock);
}

void cardserver_exit_code(struct cardserver *s, int code)
{
    pthread_mutex_lock(&s->lock);
    s->end_code = code;
    pthread_mutex_unlock(&s->lock);
}

unsigned cardserver_exit(struct cardserver *s, const char *uid)
{
    unsigned n = 0;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < CARDSERVER_OBJECTS; i++) {
        struct container *k = &s->containers[i];
        if (!k->made || k->state != CRI__CONTAINER_STATE__CONTAINER_RUNNING ||
            !is_of(k->made->config->labels, k->made->config->n_labels, uid))
            continue;
        cardserver_container_ends(s, k);
        n++;
    }
    pthread_mutex_unlock(&s->lock);
    return n;
}

unsigned cardserver_taken(struct cardserver *s, int64_t *ret_ns)
{
    pthread_mutex_lock(&s->lock);
    unsigned n = s->n_calls;
    *ret_ns = s->taken_ns;
    s->n_calls = 0;
    s->taken_ns = 0;
    pthread_mutex_unlock(&s->lock);
    return n;
}

/* --- images ----------------------------------------------------------------- */

static char *find_image(struct cardserver *s, const char *id)
{
    for (size_t i = 0; i < IMAGES_KEPT; i++)
        if (strcmp(s->images[i], id) == 0)
            return s->images[i];
    return NULL;
}

void cardserver_image(struct cardserver *s, const char *id)
{
    pthread_mutex_lock(&s->lock);
    char *place = find_image(s, "");
    assert(place);
    (void)snprintf(place, sizeof s->images[0], "%s", id);
    pthread_mutex_unlock(&s->lock);
}

bool cardserver_has_image(struct cardserver *s, const char *id)
{
    pthread_mutex_lock(&s->lock);
    bool has = find_image(s, id) != NULL;
    pthread_mutex_unlock(&s->lock);
    return has;
}

void cardserver_list_images(struct cardserver *s, struct str *reply)
{
    enum { IMAGES = 1, ID = 1, TAGS = 2, SIZE = 4 };
    for (size_t i = 0; i < IMAGES_KEPT; i++) {
        if (!s->images[i][0])
            continue;
        size_t at = proto_open(reply, IMAGES);
        proto_add_text(reply, ID, s->images[i]);
        proto_add_text(reply, TAGS, s->images[i]);
        proto_add_varint(reply, SIZE, 1000000000);
        proto_close(reply, at);
    }
}

/* Of its spec. */
void cardserver_remove_image(struct cardserver *s, const char *request,
                             size_t size)
{
    struct proto_field spec, image;
    char id[65] = "";
    const struct proto_bytes message = {request, size};
    if (proto_find(message, 1, PROTO_BYTES, &spec, NULL) > 0 &&
        proto_find(spec.bytes, 1, PROTO_BYTES, &image, NULL) > 0)
        (void)snprintf(id, sizeof id, "%.*s", (int)image.bytes.size,
                       image.bytes.data);
    char *found = *id ? find_image(s, id) : NULL;
    if (found)
        found[0] = '\0';
}

void cardserver_use(struct cardserver *s, const struct cardserver_used *used)
{
    hold_lock(&s->lock);
    s->used = *used;
}

void cardserver_list_usage(struct cardserver *s, struct str *reply)
{
    for (size_t i = 0; i < CARDSERVER_OBJECTS; i++) {
        const struct container *k = &s->containers[i];
        if (!k->made || k->state != CRI__CONTAINER_STATE__CONTAINER_RUNNING)
            continue;
        size_t stats = proto_open(reply, 1), part = proto_open(reply, 1);
        proto_add_text(reply, 1, k->id);
        for (size_t l = 0; l < k->made->config->n_labels; l++)
            proto_add_pair(reply, 3, k->made->config->labels[l]->key,
                           k->made->config->labels[l]->value);
        proto_close(reply, part);
        part = proto_open(reply, 2);
        proto_add_varint(reply, 1, (uint64_t)s->used.at_ns);
        size_t value = proto_open(reply, 2);
        proto_add_varint(reply, 1, s->used.cpu_ns);
        proto_close(reply, value);
        proto_close(reply, part);
        part = proto_open(reply, 3);
        value = proto_open(reply, 2);
        proto_add_varint(reply, 1, s->used.memory);
        proto_close(reply, value);
        proto_close(reply, part);
        proto_close(reply, stats);
    }
}
