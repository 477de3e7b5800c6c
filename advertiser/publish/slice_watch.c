#include "advertiser/publish/slice_watch.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "advertiser/publish/kube_objects.h"
#include "lib/kube/reflector.h"

/* More than that are one: anything may have changed. */
enum { NOTICES_MAX = 32 };

struct notice {
    char name[SLICE_NAME_MAX + 1];
    char version[KUBE_OBJECTS_TEXT_MAX + 1];
    bool gone;
};

struct slice_watch {
    char *query;
    int fd;
    struct reflector *reflector;
    struct notice taken;  /* who takes has this one */
    pthread_mutex_t lock; /* guards what follows */
    struct notice notices[NOTICES_MAX];
    size_t first, n;
};

/* --- the reflector's thread --------------------------------------------- */

static void add(struct slice_watch *w, const struct notice *notice)
{
    const uint64_t one = 1;
    (void)pthread_mutex_lock(&w->lock);
    if (w->n == NOTICES_MAX) {
        w->n = 1;
        w->notices[w->first] = (struct notice){.name = ""};
    } else {
        w->notices[(w->first + w->n++) % NOTICES_MAX] = *notice;
    }
    (void)pthread_mutex_unlock(&w->lock);
    /* a counter that is full wakes as well */
    (void)!write(w->fd, &one, sizeof one);
}

static void add_object(struct slice_watch *w, const char *json, size_t size,
                       bool gone)
{
    struct kube_objects o;
    struct notice notice = {.gone = gone};
    struct error ignored; /* a check reads it, too, and says what is wrong */
    if (kube_objects_read(json, size, &o, &ignored) == 0) {
        memcpy(notice.name, o.name, sizeof notice.name);
        if (!gone)
            memcpy(notice.version, o.version, sizeof notice.version);
    }
    add(w, &notice);
}

static void on_put(void *ctx, const char *json, size_t size)
{
    add_object(ctx, json, size, false);
}

static void on_gone(void *ctx, const char *json, size_t size)
{
    add_object(ctx, json, size, true);
}

/* A list does not show what was deleted before it: report a gap. */
static void on_listed(void *ctx)
{
    add(ctx, &(struct notice){.name = ""});
}

/* --- who takes ---------------------------------------------------------- */

int slice_watch_start(const struct kube_config *kube, const char *node,
                      struct slice_watch **ret_watch, struct error *err)
{
    cleanup_with(slice_watch) struct slice_watch *w = xcalloc(1, sizeof *w);
    (void)pthread_mutex_init(&w->lock, NULL);
    w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (w->fd < 0)
        return error_errno(err, errno, "eventfd");
    w->query = xasprintf(PUBLISH_NODE_SLICES, node);
    const struct reflector_kind kind = {
        .name = "resourceslices",
        .path = PUBLISH_COLLECTION,
        .query = w->query,
        .handler = {.put = on_put, .gone = on_gone, .listed = on_listed},
        .ctx = w,
        .without = "what others do to the node's slices is noticed within a "
                   "minute, not at once",
    };
    int r = reflector_start(kube, &kind, 1, &w->reflector, err);
    if (r == 0)
        *ret_watch = steal(&w);
    return r;
}

void slice_watch_stop(struct slice_watch *w)
{
    if (!w)
        return;
    reflector_stop(w->reflector);
    if (w->fd >= 0)
        (void)close(w->fd); /* nothing is kept in it */
    (void)pthread_mutex_destroy(&w->lock);
    free(w->query);
    free(w);
}

int slice_watch_fd(const struct slice_watch *w)
{
    return w->fd;
}

bool slice_watch_take(struct slice_watch *w, struct publish_notice *ret_notice)
{
    uint64_t count;
    (void)pthread_mutex_lock(&w->lock);
    bool some = w->n > 0;
    if (some) {
        w->taken = w->notices[w->first];
        w->first = (w->first + 1) % NOTICES_MAX;
        w->n--;
    } else {
        (void)!read(w->fd, &count, sizeof count); /* clears it */
    }
    (void)pthread_mutex_unlock(&w->lock);
    if (!some)
        return false;
    *ret_notice = (struct publish_notice){.name = w->taken.name,
                                          .version = w->taken.version,
                                          .gone = w->taken.gone};
    return true;
}
