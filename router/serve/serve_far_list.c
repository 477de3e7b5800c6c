#include "router/serve/serve_far_list.h"

#include <string.h>

#include "lib/base/refs.h"
#include "lib/io/log.h"
#include "router/serve/serve_guess.h"
#include "router/wire/pod_stats.h"

struct far_list {
    atomic_uint refs;
    /* What it was made of, so that these are not made anew at their place. */
    struct remote_view *view;
    struct keep_view *keep;
    bool lasts; /* it says the same as long as these two are the same */
    struct list_item *items;
    size_t n, cap, size;
    struct arena arena;
};

void far_list_unref(struct far_list *l)
{
    if (!l || !refs_drop(&l->refs))
        return;
    remote_view_unref(l->view);
    keep_view_unref(l->keep);
    free(l->items);
    arena_fini(&l->arena);
    free(l);
}

const struct list_item *far_list_items(const struct far_list *l, size_t *ret_n)
{
    *ret_n = l->n;
    return l->items;
}

size_t far_list_size(const struct far_list *l)
{
    return l->size;
}

/* --- its items ------------------------------------------------------------- */

struct making {
    struct far *far;
    const struct method *m;
    struct knowing k;
    struct far_list *list;
};

static void begin(struct making *m)
{
    knowing_init(&m->k, m->far);
    m->list = xcalloc(1, sizeof *m->list);
    atomic_init(&m->list->refs, 1);
    m->list->lasts = true;
}

static struct far_list *end(struct making *m)
{
    m->list->keep = steal(&m->k.view);
    knowing_fini(&m->k);
    return m->list;
}

static void keep_item(struct far_list *l, const struct list_item *item)
{
    l->items = xgrow(l->items, l->n, &l->cap, sizeof *l->items);
    struct list_item *to = &l->items[l->n++];
    to->id = arena_strndup(&l->arena, item->id, strlen(item->id));
    to->sandbox_id = arena_strndup(&l->arena, item->sandbox_id,
                                   strlen(item->sandbox_id));
    to->message.size = item->message.size;
    to->message.data = arena_strndup(&l->arena, item->message.data,
                                     item->message.size);
    l->size += told_list_size(item->message.size);
}

static bool is_containers(const struct method *m)
{
    return m->id == METHOD_LIST_CONTAINERS || m->id == METHOD_STREAM_CONTAINERS;
}

/* A container that has ended, and whose log is not here yet, runs still. */
static void add_item(void *ctx, const struct list_item *item)
{
    struct making *m = ctx;
    cleanup_str struct str other = STR_INIT(FROM_REMOTE_ITEM_MAX);
    struct list_item shown = *item;
    uint32_t state = CRI_EXITED;
    if (is_containers(m->m) && exits_item_has_ended(item->message))
        state = exits_state(m->far->s->exits, m->far, item->id,
                            remote_view_status(m->list->view, item->id));
    if (state != CRI_EXITED) {
        m->list->lasts = false; /* until its end is told */
        if (exits_hide_item(item->message, state, &other) == 0)
            shown.message = (struct proto_bytes){str_text(&other), other.size};
    }
    keep_item(m->list, &shown);
}

static void add_reply(struct making *m, struct proto_bytes raw)
{
    struct error err = {0};
    if (raw.size > 0 &&
        from_remote_list(m->m, raw, &m->k.known, add_item, m, &err) != 0)
        log_event(LOG_WARN, "remote-list", "remote",
                  remote_name(m->far->remote), "call", method_name(m->m),
                  "error", err.text, NULL);
}

/* --- what is there --------------------------------------------------------- */

static void add_known(struct making *m)
{
    struct far_list *l = m->list;
    cleanup_str struct str more = STR_INIT(SERVE_REPLY_MAX);
    if (remote_view_time(l->view) == 0) {
        serve_guess_list(m->far, m->m, &more);
        l->lasts = false;
    } else {
        struct proto_bytes raw = remote_view_list(l->view, m->m);
        serve_guess_made(m->far, m->m, remote_view_time(l->view), raw, &more);
        l->lasts = more.size == 0; /* what was made is seen to be there soon */
        add_reply(m, raw);
    }
    add_reply(m, (struct proto_bytes){str_text(&more), more.size});
}

static struct far_list *ref(struct far_list *l)
{
    atomic_fetch_add_explicit(&l->refs, 1, memory_order_relaxed);
    return l;
}

/* The one that is kept, when it says what those two do; NULL: it does not. */
static struct far_list *kept_one(struct far *far, size_t which,
                                 const struct remote_view *view)
{
    cleanup_with(keep_view) struct keep_view *keep = keep_view(far->s->keep);
    hold_lock(&far->s->hearing);
    struct far_list *l = far->told[which];
    return l && l->lasts && far->n_made == 0 && l->view == view &&
                   l->keep == keep
               ? ref(l)
               : NULL;
}

static void keep_this(struct far *far, size_t which, struct far_list *l)
{
    (void)pthread_mutex_lock(&far->s->hearing);
    struct far_list *old = far->told[which];
    far->told[which] = l->lasts ? ref(l) : NULL;
    (void)pthread_mutex_unlock(&far->s->hearing);
    far_list_unref(old);
}

struct far_list *far_list(struct far *far, const struct method *m)
{
    struct making making = {.far = far, .m = m};
    cleanup_with(remote_view) struct remote_view *v = remote_view(far->remote);
    size_t which = is_containers(m);
    struct far_list *l = kept_one(far, which, v);
    if (l)
        return l;
    begin(&making);
    making.list->view = steal(&v);
    add_known(&making);
    l = end(&making);
    keep_this(far, which, l);
    return l;
}

/* --- stats ----------------------------------------------------------------- */

struct far_list *far_list_stats(struct far *far, const struct method *m,
                                struct proto_bytes containers)
{
    struct making making = {.far = far, .m = m};
    cleanup_str struct str pods = STR_INIT(SERVE_REPLY_MAX);
    pods.soft = true;
    begin(&making);
    if (m->id != METHOD_LIST_POD_SANDBOX_STATS &&
        m->id != METHOD_STREAM_POD_SANDBOX_STATS)
        add_reply(&making, containers);
    else if (pod_stats_write(containers, &making.k.known, NULL, &pods, NULL) ==
             0)
        add_reply(&making, (struct proto_bytes){str_text(&pods), pods.size});
    return end(&making);
}
