/* Containers that have ended: the end of the log and the termination message
 * are brought here before the kubelet is told, because it reads both then, and
 * once. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "lib/base/strmap.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "lib/io/thread_name.h"
#include "router/serve/serve_private.h"
#include "router/wire/edit.h"

enum { CUT_MS = 500 }; /* between looks whether a remote is back */

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
    struct exit_lane lanes[SERVE_FARS_MAX];
};

/* --- one ------------------------------------------------------------------------
 */

static void collect(struct exits *e, const struct kept *k)
{
    const struct volume_pod pod = {k->remote, k->uid};
    struct serve_mounts m;
    struct error err = {0};
    serve_mounts_read(k, &e->s->rules, &m);
    for (size_t i = 0; i < m.n; i++)
        if (m.list[i].kind == MOUNT_TERMINATION_LOG &&
            volume_sync_collect(e->s->volumes, &pod, &m.list[i], &err) < 0)
            log_event(LOG_WARN, "termination-message", "remote", k->remote,
                      "pod", k->name, "container", k->container, "error",
                      err.text, NULL);
    serve_mounts_fini(&m);
}

/* So that the next router tells the same, also while the remote is away. */
static void write_down(struct exits *e, struct far *far, const struct kept *k)
{
    cleanup_with(remote_view) struct remote_view *v = remote_view(far->remote);
    cleanup_str struct str told = STR_INIT(FROM_REMOTE_STATUS_MAX);
    cleanup_str struct str end = STR_INIT(KEPT_ENDED_MAX);
    struct proto_bytes raw = remote_view_status(v, k->id);
    struct error err = {0};
    struct knowing known;
    told.soft = end.soft = true;
    knowing_init(&known, far);
    const struct known_container *c = known.known.container(&known, k->id);
    int r = c && exits_has_ended(raw) /* else nobody knows how */
                ? from_remote_container_status(raw, c, &told, &err)
                : -ENOENT;
    if (r == 0)
        r = told_end((struct proto_bytes){str_text(&told), told.size}, &end,
                     &err);
    if (r == 0)
        r = keep_ended(e->s->keep, k->id,
                       (struct proto_bytes){str_text(&end), end.size}, &err);
    knowing_fini(&known);
    if (r < 0 && err.text[0])
        log_event(LOG_WARN, "end-not-kept", "remote", k->remote, "pod", k->name,
                  "container", k->container, "error", err.text, NULL);
}

/* False: the end has come. */
static bool pause_a_while(struct exits *e)
{
    hold_lock(&e->lock);
    if (!e->stopping)
        (void)clock_wait(&e->wake, &e->lock, clock_ms() + CUT_MS);
    return !e->stopping;
}

/* False: it stays as it was told last, for the next router. */
static bool finish(struct exits *e, struct far *far, const char *id)
{
    cleanup_with(kept) struct kept *k = keep_find(e->s->keep, id);
    char key[LOG_KEY_MAX + 1];
    struct error err = {0};
    int r = 0;
    if (!k)
        return true;
    serve_log_key(k->uid, k->container, k->attempt, key);
    /* what is cut off comes back, or its pods are withdrawn */
    while (e->s->logs && (r = log_copier_finish(e->s->logs, key, SERVE_EXIT_MS,
                                                &err)) == -ENETUNREACH)
        if (!pause_a_while(e))
            return false;
    if (r == -ECANCELED)
        return false;
    if (r < 0)
        log_event(LOG_WARN, "log-end", "remote", k->remote, "pod", k->name,
                  "container", k->container, "error", err.text, NULL);
    collect(e, k);
    write_down(e, far, k);
    return true;
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
    struct far *from = &l->e->s->fars[l - l->e->lanes];
    char id[KEPT_ID_MAX + 1];
    thread_name("ends", remote_name(from->remote));
    while (next(l, id)) {
        if (!finish(l->e, from, id))
            continue;
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
    for (size_t i = 0; i < SERVE_FARS_MAX; i++) {
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
    for (size_t i = 0; i < SERVE_FARS_MAX; i++)
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

/* By this process or those of before. */
static bool was_told(struct exits *e, const char *id)
{
    cleanup_with(kept) struct kept *k = keep_find(e->s->keep, id);
    return k && k->ended.size;
}

static bool seen(struct exits *e, struct far *far, const char *id)
{
    struct exit_lane *l = &e->lanes[far - e->s->fars];
    hold_lock(&e->lock);
    struct exit_item *i = strmap_get(&e->items, id);
    if (i || e->stopping || was_told(e, id))
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

/* containerd's words for one of which no process has run. */
static bool never_ran(struct proto_bytes reply)
{
    static const char words[] = "failed to create containerd task";
    struct proto_bytes s = edit_bytes(reply,
                                      CRI_ContainerStatusResponse_status);
    struct proto_bytes text = edit_bytes(s, CRI_ContainerStatus_message);
    return proto_equals(edit_bytes(s, CRI_ContainerStatus_reason),
                        "StartError") &&
           text.size && memmem(text.data, text.size, words, sizeof words - 1);
}

/* containerd ends one whose StartContainer is cut off, as by the death of its
 * caller.  Where no process of it has run, that would be a false end of a pod
 * that is not to restart; of one that was only created the kubelet makes
 * another. */
uint32_t exits_state(struct exits *e, struct far *far, const char *id,
                     struct proto_bytes status)
{
    if (never_ran(status))
        return was_told(e, id) ? CRI_EXITED : CRI_CREATED;
    return seen(e, far, id) ? CRI_EXITED : CRI_RUNNING;
}

void exits_failed(struct exits *e, struct far *far, const char *id)
{
    cleanup_with(kept) struct kept *k = keep_find(e->s->keep, id);
    if (k)
        write_down(e, far, k);
}

void exits_await(struct exits *e, struct far *far, const char *id,
                 struct proto_bytes status, int64_t due_ms)
{
    if (exits_state(e, far, id, status) != CRI_RUNNING)
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
    const uint32_t *state = ctx;
    (void)err;
    if (f->number != CRI_Container_state)
        return EDIT_COPY;
    proto_add_varint(out, CRI_Container_state, *state);
    return EDIT_DROP;
}

static int hide_status(void *ctx, const struct proto_field *f, struct str *out,
                       struct error *err)
{
    const uint32_t *state = ctx;
    (void)err;
    switch (f->number) {
    case CRI_ContainerStatus_state:
        proto_add_varint(out, CRI_ContainerStatus_state, *state);
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

int exits_hide_item(struct proto_bytes item, uint32_t state, struct str *out)
{
    return edit_fields(item, hide_item, &state, out, NULL);
}

int exits_show(struct exits *e, struct far *far, const char *id,
               struct str *status)
{
    cleanup_str struct str other = STR_INIT(SERVE_REPLY_MAX);
    struct proto_bytes told = {str_text(status), status->size};
    uint32_t state = exits_has_ended(told) ? exits_state(e, far, id, told)
                                           : CRI_EXITED;
    other.soft = true;
    int r = state == CRI_EXITED
                ? 0
                : edit_fields(told, hide_reply, &state, &other, NULL);
    if (r == 0 && state != CRI_EXITED) {
        str_reset(status);
        str_move(status, &other);
    }
    return r;
}
