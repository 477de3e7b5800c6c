#include "router/volume/volume_watch.h"

#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "router/volume/volume_quiet.h"

enum {
    EVENTS = IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM |
             IN_MOVED_TO | IN_ATTRIB | IN_ONLYDIR | IN_DONT_FOLLOW,
};

struct watched {
    uint64_t id;
    char *folder; /* that is watched */
    char *leaf;   /* what in it, NULL all of it */
    int wd;       /* below 0: none, it is polled */
};

struct volume_watch {
    pthread_mutex_t lock;
    int inotify, wake;
    uint64_t last_id;
    struct watched *list;
    size_t n, cap;
    struct volume_quiet quiet;
    int64_t poll_ms; /* when those without a watch are next taken as changed */
};

struct volume_watch *volume_watch_create(void)
{
    struct volume_watch *w = xcalloc(1, sizeof *w);
    (void)pthread_mutex_init(&w->lock, NULL); /* cannot fail */
    w->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    w->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    w->poll_ms = clock_ms() + VOLUME_WATCH_POLL_MS;
    if (w->inotify < 0)
        log_event(LOG_WARN, "volume-watch", "error", strerror(errno), NULL);
    return w;
}

void volume_watch_destroy(struct volume_watch *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < w->n; i++) {
        free(w->list[i].folder);
        free(w->list[i].leaf);
    }
    free(w->list);
    volume_quiet_fini(&w->quiet);
    /* neither is written to */
    (void)close(w->wake);
    if (w->inotify >= 0)
        (void)close(w->inotify);
    (void)pthread_mutex_destroy(&w->lock);
    free(w);
}

void volume_watch_wake(struct volume_watch *w)
{
    const uint64_t one = 1;
    /* a counter that is full wakes as well */
    ssize_t n = write(w->wake, &one, sizeof one);
    (void)n;
}

static void watch(struct volume_watch *w, struct watched *e)
{
    e->wd = w->inotify < 0 ? -1
                           : inotify_add_watch(w->inotify, e->folder, EVENTS);
}

uint64_t volume_watch_add(struct volume_watch *w, const char *path)
{
    struct stat st;
    const char *slash = strrchr(path, '/');
    bool folder = lstat(path, &st) != 0 || S_ISDIR(st.st_mode) || !slash;
    struct watched e = {
        .folder = folder ? xstrdup(path)
                         : xstrndup(path, (size_t)(slash - path)),
        .leaf = folder ? NULL : xstrdup(slash + 1),
    };
    hold_lock(&w->lock);
    e.id = ++w->last_id;
    watch(w, &e);
    w->list = xgrow(w->list, w->n, &w->cap, sizeof *w->list);
    w->list[w->n++] = e;
    return e.id;
}

/* Two may have the same folder, and so one watch. */
static void unwatch(struct volume_watch *w, int wd)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->list[i].wd == wd)
            return;
    if (wd >= 0)
        (void)inotify_rm_watch(w->inotify, wd); /* it may have gone */
}

void volume_watch_remove(struct volume_watch *w, uint64_t id)
{
    hold_lock(&w->lock);
    for (size_t i = 0; i < w->n; i++) {
        struct watched e = w->list[i];
        if (e.id != id)
            continue;
        w->list[i] = w->list[--w->n];
        unwatch(w, e.wd);
        volume_quiet_drop(&w->quiet, id);
        free(e.folder);
        free(e.leaf);
        return;
    }
}

/* --- what the kernel tells ---------------------------------------------------- */

static void take_event(struct volume_watch *w,
                       const struct inotify_event *event, int64_t now)
{
    for (size_t i = 0; i < w->n; i++) {
        struct watched *e = &w->list[i];
        bool all = event->mask & IN_Q_OVERFLOW;
        if (!all && e->wd != event->wd)
            continue;
        if (!all && event->mask & IN_IGNORED)
            e->wd = -1; /* the folder has gone */
        else if (!all && e->leaf && event->len > 0 &&
                 strcmp(e->leaf, event->name) != 0)
            continue;
        volume_quiet_note(&w->quiet, e->id, now);
    }
}

static void take_events(struct volume_watch *w)
{
    _Alignas(struct inotify_event) char
        buffer[16 * (sizeof(struct inotify_event) + NAME_MAX + 1)];
    int64_t now = clock_ms();
    for (ssize_t n;
         w->inotify >= 0 && (n = read(w->inotify, buffer, sizeof buffer)) > 0;)
        for (char *at = buffer; at < buffer + n;) {
            const struct inotify_event *event = (const void *)at;
            take_event(w, event, now);
            at += sizeof *event + event->len;
        }
}

static void take_polled(struct volume_watch *w)
{
    int64_t now = clock_ms();
    if (now < w->poll_ms)
        return;
    w->poll_ms = now + VOLUME_WATCH_POLL_MS;
    for (size_t i = 0; i < w->n; i++) {
        if (w->list[i].wd >= 0)
            continue;
        watch(w, &w->list[i]); /* from now on, or again nothing */
        volume_quiet_note(&w->quiet, w->list[i].id, now);
    }
}

static bool any_polled(const struct volume_watch *w)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->list[i].wd < 0)
            return true;
    return false;
}

/* Until something is to be done, or somebody wakes; true: that was it. */
static bool sleep_until(struct volume_watch *w, int64_t due_ms)
{
    struct pollfd fds[] = {{.fd = w->wake, .events = POLLIN},
                           {.fd = w->inotify, .events = POLLIN}};
    int64_t left = due_ms - clock_ms();
    int ms = left < 0 ? 0 : left < INT_MAX ? (int)left : -1;
    uint64_t count;
    (void)poll(fds, ARRAY_LEN(fds), ms); /* EINTR: the caller looks again */
    return read(w->wake, &count, sizeof count) > 0;
}

size_t volume_watch_wait(struct volume_watch *w, int64_t due_ms,
                         uint64_t *ret_ids, size_t max)
{
    for (bool woken = false;;) {
        (void)pthread_mutex_lock(&w->lock);
        take_events(w);
        take_polled(w);
        int64_t now = clock_ms();
        size_t n = volume_quiet_take(&w->quiet, now, ret_ids, max);
        int64_t next = volume_quiet_due(&w->quiet);
        if (any_polled(w) && w->poll_ms < next)
            next = w->poll_ms;
        (void)pthread_mutex_unlock(&w->lock);
        if (n > 0 || woken || now >= due_ms)
            return n;
        woken = sleep_until(w, next < due_ms ? next : due_ms);
    }
}
