#include "router/serve/serve_collect.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "lib/io/thread_name.h"
#include "router/image/image_shelf.h"
#include "router/serve/serve_private.h"
#include "router/wire/fields.h"

struct shelf {
    struct image_shelf *images;
    bool busy; /* somebody is at it, or at that remote */
};

struct collector {
    struct serve *s;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stopping;
    pthread_t thread;
    struct shelf shelves[SERVE_FARS_MAX];
};

/* One look at one remote. */
struct looking {
    struct collector *c;
    struct far *far;
    struct image_shelf *shelf;
    struct str images, containers;
    struct image_goes goes[COLLECT_AT_ONCE];
};

/* --- calls ------------------------------------------------------------------ */

static int call(struct looking *l, enum method_id method,
                const struct str *request, unsigned ms, struct str *reply,
                struct error *err)
{
    struct grpc_end end;
    const struct remote_ask ask = {
        .method = method_get(method),
        .request = {str_text(request), request->size},
        .ms = ms};
    str_reset(reply);
    return remote_call(l->far->remote, &ask, reply, &end, err);
}

/* Containers of all, also of those that are not ours. */
static int look_at_containers(struct looking *l, struct error *err)
{
    const struct str all = {0};
    int r = call(l, METHOD_LIST_CONTAINERS, &all, COLLECT_CALL_MS,
                 &l->containers, err);
    return r < 0
               ? r
               : image_shelf_see(
                     l->shelf, l->c->s->config.helper_image,
                     (struct proto_bytes){str_text(&l->images), l->images.size},
                     (struct proto_bytes){str_text(&l->containers),
                                          l->containers.size},
                     clock_ms(), err);
}

static int look(struct looking *l, struct error *err)
{
    const struct str all = {0};
    int r = call(l, METHOD_LIST_IMAGES, &all, COLLECT_CALL_MS, &l->images, err);
    return r < 0 ? r : look_at_containers(l, err);
}

/* A pod may have begun with it since the plan was made. */
static int remove_one(struct looking *l, const struct image_goes *goes,
                      struct error *err)
{
    cleanup_str struct str request = STR_INIT(2 * IMAGE_ID_MAX);
    cleanup_str struct str reply = STR_INIT(GRPC_REPLY_MAX);
    int r = look_at_containers(l, err);
    if (r < 0)
        return r;
    if (image_shelf_is_used(l->shelf, goes->id))
        return error_set(err, EBUSY, "a container has begun with it");
    size_t at = proto_open(&request, CRI_RemoveImageRequest_image);
    proto_add_text(&request, CRI_ImageSpec_image, goes->id);
    proto_close(&request, at);
    reply.soft = true;
    return call(l, METHOD_REMOVE_IMAGE, &request, COLLECT_REMOVE_MS, &reply,
                err);
}

static void tell(const struct looking *l, const struct image_goes *goes, int r,
                 const struct error *err)
{
    const char *labels[] = {remote_name(l->far->remote), goes->why};
    char size[24];
    if (r == 0)
        metrics_add(l->c->s->metrics, SERVE_IMAGES, labels, 1);
    (void)snprintf(size, sizeof size, "%" PRIu64, goes->size);
    log_event(r < 0 ? LOG_WARN : LOG_INFO,
              r < 0 ? "image-stays" : "image-collected", "remote",
              remote_name(l->far->remote), "image", goes->name, "id", goes->id,
              "bytes", size, "why", goes->why, r < 0 ? "error" : NULL,
              err->text, NULL);
}

/* --- one remote --------------------------------------------------------------- */

static size_t remove_all(struct looking *l, size_t n, int64_t due_ms)
{
    size_t n_gone = 0;
    for (size_t i = 0; i < n && clock_ms() < due_ms; i++) {
        struct error err = {0};
        int r = remove_one(l, &l->goes[i], &err);
        if (r == -ECANCELED || r == -EHOSTDOWN)
            break;
        tell(l, &l->goes[i], r, &err);
        n_gone += r == 0;
    }
    return n_gone;
}

/* biga-card tells it, which is not to be started on a card without pods. */
static bool is_disk_asked_for(const struct looking *l, bool full)
{
    const struct serve *s = l->c->s;
    const char *name = remote_name(l->far->remote);
    return full || (s->config.images.high < 100 &&
                    keep_count(s->keep, name, KEPT_MADE) > 0);
}

static size_t collect(struct looking *l, bool full, int64_t due_ms)
{
    const struct serve_config *config = &l->c->s->config;
    struct image_disk disk = {0};
    struct error err = {0};
    int r = look(l, &err);
    /* when nobody knows it, images go by age alone */
    if (r == 0 && is_disk_asked_for(l, full))
        (void)serve_files_disk(l->far, COLLECT_CALL_MS, &disk);
    if (r < 0) {
        log_event(LOG_WARN, "images-not-seen", "remote",
                  remote_name(l->far->remote), "error", err.text, NULL);
        return 0;
    }
    size_t n = image_shelf_plan(l->shelf, &config->images, &disk, full,
                                clock_ms(), l->goes, COLLECT_AT_ONCE);
    return remove_all(l, n, due_ms);
}

static bool take(struct collector *c, struct shelf *s, int64_t due_ms)
{
    hold_lock(&c->lock);
    while (s->busy && !c->stopping)
        if (!clock_wait(&c->wake, &c->lock, due_ms))
            return false;
    if (c->stopping)
        return false;
    s->busy = true;
    return true;
}

static void give(struct collector *c, struct shelf *s)
{
    hold_lock(&c->lock);
    s->busy = false;
    (void)pthread_cond_broadcast(&c->wake);
}

static size_t run(struct collector *c, struct far *far, bool full,
                  int64_t due_ms)
{
    struct shelf *s = &c->shelves[far - c->s->fars];
    if (!take(c, s, due_ms))
        return 0;
    struct looking *l = xcalloc(1, sizeof *l);
    *l = (struct looking){.c = c, .far = far, .shelf = s->images};
    str_init(&l->images, GRPC_REPLY_MAX);
    str_init(&l->containers, GRPC_REPLY_MAX);
    l->images.soft = l->containers.soft = true;
    size_t n = collect(l, full, due_ms);
    str_fini(&l->images);
    str_fini(&l->containers);
    free(l);
    give(c, s);
    return n;
}

size_t collector_make_room(struct collector *c, struct far *far, int64_t due_ms)
{
    return c ? run(c, far, true, due_ms) : 0;
}

/* --- all of them ------------------------------------------------------------ */

static bool wait_for_turn(struct collector *c, int64_t due_ms)
{
    hold_lock(&c->lock);
    while (!c->stopping)
        if (!clock_wait(&c->wake, &c->lock, due_ms))
            return true;
    return false;
}

static void *thread(void *arg)
{
    struct collector *c = arg;
    struct far *far;
    int64_t every_ms = c->s->config.collect_ms ? c->s->config.collect_ms
                                               : COLLECT_MS;
    thread_name("images", NULL);
    while (wait_for_turn(c, clock_ms() + every_ms))
        for (size_t i = 0; (far = serve_next(c->s, &i));)
            if (remote_health(far->remote, NULL) == ACT_READY)
                (void)run(c, far, false, INT64_MAX);
    return NULL;
}

static void destroy(struct collector *c)
{
    for (size_t i = 0; i < SERVE_FARS_MAX; i++)
        image_shelf_destroy(c->shelves[i].images);
    (void)pthread_mutex_destroy(&c->lock);
    (void)pthread_cond_destroy(&c->wake);
    free(c);
}

struct collector *collector_start(struct serve *s)
{
    struct collector *c = xcalloc(1, sizeof *c);
    c->s = s;
    (void)pthread_mutex_init(&c->lock, NULL);
    clock_wait_init(&c->wake);
    for (size_t i = 0; i < SERVE_FARS_MAX; i++)
        c->shelves[i].images = image_shelf_create();
    if (pthread_create(&c->thread, NULL, thread, c) == 0)
        return c;
    log_event(LOG_WARN, "images-not-collected", "error", "no thread", NULL);
    destroy(c);
    return NULL;
}

void collector_stop(struct collector *c)
{
    if (!c)
        return;
    (void)pthread_mutex_lock(&c->lock);
    c->stopping = true;
    (void)pthread_cond_broadcast(&c->wake);
    (void)pthread_mutex_unlock(&c->lock);
    (void)pthread_join(c->thread, NULL);
    destroy(c);
}
