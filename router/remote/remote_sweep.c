/* Removes what is of nobody; its calls may take long, so it has a thread. */
#include <errno.h>

#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "lib/io/thread_name.h"
#include "router/remote/remote_private.h"

enum { REMOVE_MS = 60000 };

static int remove_one(struct remote *r, const struct orphan *o,
                      struct error *err)
{
    int e = remote_call_id(
        r, o->sandbox ? METHOD_STOP_POD_SANDBOX : METHOD_STOP_CONTAINER, o->id,
        REMOVE_MS, err);
    if (e == 0)
        e = remote_call_id(
            r, o->sandbox ? METHOD_REMOVE_POD_SANDBOX : METHOD_REMOVE_CONTAINER,
            o->id, REMOVE_MS, err);
    return e;
}

static void tell(const struct remote *r, const struct orphan *o, int e,
                 const struct error *err)
{
    if (e == 0)
        log_event(LOG_INFO, "orphan-removed", "remote", r->config.place.name,
                  "uid", o->uid, "id", o->id, NULL);
    else
        log_event(LOG_WARN, "orphan-stays", "remote", r->config.place.name,
                  "uid", o->uid, "id", o->id, "error", err->text, NULL);
}

void *remote_sweep_thread(void *remote)
{
    struct remote *r = remote;
    struct orphan orphan;
    thread_name("sweep", r->config.place.name);
    (void)pthread_mutex_lock(&r->lock);
    while (!r->stopping) {
        int64_t due = r->health.now == ACT_READY ? sweep_due(&r->sweeping)
                                                 : INT64_MAX;
        if (due > clock_ms() ||
            !sweep_take(&r->sweeping, clock_ms(), &orphan)) {
            (void)clock_wait(&r->sweep, &r->lock, due);
            continue;
        }
        struct error err = {0};
        (void)pthread_mutex_unlock(&r->lock);
        int e = remove_one(r, &orphan, &err);
        if (e != -ECANCELED)
            tell(r, &orphan, e, &err);
        (void)pthread_mutex_lock(&r->lock);
        if (e != 0)
            continue;
        sweep_removed(&r->sweeping, orphan.id);
        r->counts.n_orphans++;
    }
    (void)pthread_mutex_unlock(&r->lock);
    return NULL;
}
