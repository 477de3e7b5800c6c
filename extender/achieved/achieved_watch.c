#include "extender/achieved/achieved_watch.h"

#include <pthread.h>
#include <stdlib.h>

#include "lib/io/clock.h"
#include "lib/io/thread_name.h"

struct achieved_watch {
    struct achieved_watch_config config;
    struct achieved_marks *marks; /* the thread's */
    pthread_t thread;
    bool started;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;
    bool stopping;
    int64_t due_ms, rest_ms; /* of the next look, which is not before */
};

static void look(struct achieved_watch *w, bool all)
{
    size_t n;
    cleanup_with(snapshot) struct snapshot *s =
        writer_snapshot(w->config.writer);
    cleanup_free struct achieved_report **reports =
        achieved_book_list(w->config.book, &n);
    achieved_marks_look(w->marks, s, reports, n, all);
    for (size_t i = 0; i < n; i++)
        achieved_report_unref(reports[i]);
}

static void *watch_thread(void *ctx)
{
    struct achieved_watch *w = ctx;
    int64_t again_ms = clock_ms() + ACHIEVED_AGAIN_MS;
    thread_name("achieved", NULL);
    hold_lock(&w->lock);
    while (!w->stopping) {
        int64_t now_ms = clock_ms();
        int64_t due_ms = w->due_ms < again_ms ? w->due_ms : again_ms;
        if (due_ms > now_ms) {
            (void)clock_wait(&w->wake, &w->lock, due_ms);
            continue;
        }
        bool all = now_ms >= again_ms;
        again_ms = all ? now_ms + ACHIEVED_AGAIN_MS : again_ms;
        w->due_ms = INT64_MAX;
        w->rest_ms = now_ms + ACHIEVED_PAUSE_MS;
        pthread_mutex_unlock(&w->lock);
        look(w, all);
        pthread_mutex_lock(&w->lock);
    }
    return NULL;
}

static void on_changed(void *ctx)
{
    struct achieved_watch *w = ctx;
    hold_lock(&w->lock);
    if (w->due_ms <= w->rest_ms)
        return; /* it wakes for that already */
    w->due_ms = w->rest_ms;
    clock_wake_one(&w->wake);
}

int achieved_watch_start(const struct achieved_watch_config *config,
                         struct achieved_watch **ret_watch, struct error *err)
{
    cleanup_with(achieved_watch) struct achieved_watch *w = xcalloc(1,
                                                                    sizeof *w);
    w->config = *config;
    w->marks = achieved_marks_create(&config->told);
    (void)pthread_mutex_init(&w->lock, NULL); /* cannot fail on Linux */
    clock_wait_init(&w->wake);
    int rc = pthread_create(&w->thread, NULL, watch_thread, w);
    if (rc)
        return error_errno(err, rc, "starting the thread of what was achieved");
    w->started = true;
    writer_watch(config->writer, on_changed, w);
    achieved_book_watch(config->book, on_changed, w);
    *ret_watch = steal(&w);
    return 0;
}

static void join(struct achieved_watch *w)
{
    writer_unwatch(w->config.writer, w);
    achieved_book_watch(w->config.book, NULL, NULL);
    pthread_mutex_lock(&w->lock);
    w->stopping = true;
    clock_wake_one(&w->wake);
    pthread_mutex_unlock(&w->lock);
    (void)pthread_join(w->thread, NULL); /* it was started, once */
}

void achieved_watch_stop(struct achieved_watch *w)
{
    if (!w)
        return;
    if (w->started)
        join(w);
    achieved_marks_destroy(w->marks);
    (void)pthread_cond_destroy(&w->wake);
    (void)pthread_mutex_destroy(&w->lock);
    free(w);
}
