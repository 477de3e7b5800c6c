/* Containers that have ended: the end of the log and the termination message
 * are brought here before the kubelet is told, because it reads both then, and
 * once. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "lib/base/strmap.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "router/serve/serve_private.h"
#include "router/wire/edit.h"

struct exit_item {
    char id[KEPT_ID_MAX + 1];
    struct far *far;
    bool taken, done;
    struct exit_item *next; /* in the queue of its remote */
};

struct exit_lane {
    struct exits *e;
    struct exit_item *first, **last;
    pthread_t thread;
    bool runs;
};

struct exits {
    struct serve *s;
    pthread_mutex_t lock;
    pthread_cond_t wake, finished;
    bool stopping;
    struct strmap items;
    struct exit_lane lanes[SERVE_REMOTES_MAX];
};

/* --- one ------------------------------------------------------------------------
 */

static void collect(struct exits *e, const struct kept *k)
{
    const struct serve_config *c = &e->s->config;
    const struct mount_rules rules = {.kubelet_root = c->kubelet_dir,
                                      .allowed = c->host_paths,
                                      .n_allowed = c->n_host_paths};
    const struct volume_pod pod = {k->remote, k->uid};
    struct serve_mounts m;
    struct error err = {0};
    serve_mounts_read(k, &rules, &m);
    for (size_t i = 0; i < m.n; i++)
        if (m.list[i].kind == MOUNT_TERMINATION_LOG &&
            volume_sync_collect(e->s->volumes, &pod, &m.list[i], &err) < 0)
            log_event(LOG_WARN, "termination-message", "remote", k->remote,
                      "pod", k->name, "container", k->container, "error",
                      err.text, NULL);
    serve_mounts_fini(&m);
}

static void finish(struct exits *e, const char *id)
{
    struct kept *k = keep_find(e->s->keep, id);
    char key[LOG_KEY_MAX + 1];
    struct error err = {0};
    if (!k)
        return;
    serve_log_key(k->uid, k->container, k->attempt, key);
    if (e->s->logs &&
        log_copier_finish(e->s->logs, key, SERVE_EXIT_MS, &err) < 0)
        log_event(LOG_WARN, "log-end", "remote", k->remote, "pod", k->name,
                  "container", k->container, "error", err.text, NULL);
    collect(e, k);
    kept_unref(k);
}

/* The next of the lane; NULL: it is to end. */
static bool next(struct exit_lane *l, char ret_id[KEPT_ID_MAX + 1])
{
    hold_lock(&l->e->lock);
    while (!l->first && !l->e->stopping)
        (void)clock_wait(&l->e->wake, &l->e->lock, INT64_MAX);
    struct exit_item *i = l->first;
    if (l->e->stopping)
        return false;
    l->first = i->next;
    if (!l->first)
        l->last = &l->first;
    i->taken = true;
    memcpy(ret_id, i->id, sizeof i->id);
    return true;
}

static void *run(void *arg)
{
    struct exit_lane *l = arg;
    char id[KEPT_ID_MAX + 1];
    while (next(l, id)) {
        finish(l->e, id);
        (void)pthread_mutex_lock(&l->e->lock);
        struct exit_item *i = strmap_get(&l->e->items, id);
        struct far *far = i ? i->far : NULL;
        if (i)
            i->done = true;
        (void)pthread_cond_broadcast(&l->e->finished);
        (void)pthread_mutex_unlock(&l->e->lock);
        if (far)
            serve_event_exited(far, id);
    }
    return NULL;
}

/* --- from start to end -----------------------------------------------------------
 */

struct exits *exits_create(struct serve *s)
{
    struct exits *e = xcalloc(1, sizeof *e);
    e->s = s;
    (void)pthread_mutex_init(&e->lock, NULL);
    clock_wait_init(&e->wake);
    clock_wait_init(&e->finished);
    for (size_t i = 0; i < SERVE_REMOTES_MAX; i++) {
        e->lanes[i].e = e;
        e->lanes[i].last = &e->lanes[i].first;
    }
    return e;
}

void exits_destroy(struct exits *e)
{
    if (!e)
        return;
    (void)pthread_mutex_lock(&e->lock);
    e->stopping = true;
    (void)pthread_cond_broadcast(&e->wake);
    (void)pthread_cond_broadcast(&e->finished);
    (void)pthread_mutex_unlock(&e->lock);
    for (size_t i = 0; i < SERVE_REMOTES_MAX; i++)
        if (e->lanes[i].runs)
            (void)pthread_join(e->lanes[i].thread, NULL);
    strmap_fini_with(&e->items, free);
    (void)pthread_mutex_destroy(&e->lock);
    (void)pthread_cond_destroy(&e->wake);
    (void)pthread_cond_destroy(&e->finished);
    free(e);
}

/* Where there is no thread to be had, the kubelet is told at once. */
static bool wake(struct exit_lane *l)
{
    if (!l->runs)
        l->runs = pthread_create(&l->thread, NULL, run, l) == 0;
    (void)pthread_cond_broadcast(&l->e->wake);
    return l->runs;
}

bool exits_seen(struct exits *e, struct far *far, const char *id)
{
    struct exit_lane *l = &e->lanes[far - e->s->fars];
    hold_lock(&e->lock);
    struct exit_item *i = strmap_get(&e->items, id);
    if (i || e->stopping)
        return !i || i->done;
    i = xcalloc(1, sizeof *i);
    (void)snprintf(i->id, sizeof i->id, "%s", id);
    i->far = far;
    (void)strmap_put(&e->items, i->id, i);
    *l->last = i;
    l->last = &i->next;
    i->done = !wake(l);
    return i->done;
}

void exits_await(struct exits *e, struct far *far, const char *id,
                 int64_t due_ms)
{
    if (exits_seen(e, far, id))
        return;
    hold_lock(&e->lock);
    for (bool wait = true; wait && !e->stopping;) {
        const struct exit_item *i = strmap_get(&e->items, id);
        if (!i || i->done)
            return;
        wait = clock_wait(&e->finished, &e->lock, due_ms);
    }
}

static void unlink_item(struct exit_lane *l, struct exit_item *gone)
{
    struct exit_item **at = &l->first;
    while (*at && *at != gone)
        at = &(*at)->next;
    if (!*at)
        return;
    *at = gone->next;
    if (l->last == &gone->next)
        l->last = at;
}

void exits_forget(struct exits *e, const char *id)
{
    hold_lock(&e->lock);
    struct exit_item *i = strmap_remove(&e->items, id);
    if (i)
        unlink_item(&e->lanes[i->far - e->s->fars], i);
    free(i);
}

/* --- how it is told meanwhile ---------------------------------------------------
 */

static bool is_exited(struct proto_bytes message, uint32_t number)
{
    return edit_number(message, number) == CRI_EXITED;
}

bool exits_item_has_ended(struct proto_bytes item)
{
    return is_exited(item, CRI_Container_state);
}

bool exits_has_ended(struct proto_bytes reply)
{
    return is_exited(edit_bytes(reply, CRI_ContainerStatusResponse_status),
                     CRI_ContainerStatus_state);
}

static int hide_item(void *ctx, const struct proto_field *f, struct str *out,
                     struct error *err)
{
    (void)ctx;
    (void)err;
    if (f->number != CRI_Container_state)
        return EDIT_COPY;
    proto_add_varint(out, CRI_Container_state, CRI_RUNNING);
    return EDIT_DROP;
}

static int hide_status(void *ctx, const struct proto_field *f, struct str *out,
                       struct error *err)
{
    (void)ctx;
    (void)err;
    switch (f->number) {
    case CRI_ContainerStatus_state:
        proto_add_varint(out, CRI_ContainerStatus_state, CRI_RUNNING);
        return EDIT_DROP;
    case CRI_ContainerStatus_finished_at:
    case CRI_ContainerStatus_exit_code:
    case CRI_ContainerStatus_reason:
    case CRI_ContainerStatus_message:
        return EDIT_DROP;
    default:
        return EDIT_COPY;
    }
}

static int hide_reply(void *ctx, const struct proto_field *f, struct str *out,
                      struct error *err)
{
    return f->number == CRI_ContainerStatusResponse_status
               ? edit_within(f, hide_status, NULL, ctx, out, err)
               : EDIT_COPY;
}

int exits_hide_item(struct proto_bytes item, struct str *out)
{
    return edit_fields(item, hide_item, NULL, out, NULL);
}

int exits_hide(struct proto_bytes reply, struct str *out)
{
    return edit_fields(reply, hide_reply, NULL, out, NULL);
}
