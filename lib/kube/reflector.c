#include "lib/kube/reflector.h"

#include <string.h>

#include "lib/io/clock.h"
#include "lib/io/thread_name.h"
#include "lib/kube/client.h"
#include "lib/kube/reflector_private.h"

enum { POLL_MAX_MS = 60000 };

/* The API server sends a bookmark about every minute, so a watch that is
 * silent for longer has lost its server, or a bookmark. */
const struct reflector_tuning reflector_tuning_default = {
    .page = REFLECTOR_PAGE,
    .object_max = KUBE_OBJECT_MAX,
    .list_silence_ms = 60000,
    .watch_silence_ms = 90000,
    .wait_min_ms = 250,
    .wait_max_ms = 15000,
    .forbidden_max_ms = 600000,
    .absent_ms = 3000,
    .short_ms = 1000,
    .good_ms = 5000,
};

/* Begin what is due; returns how long nothing else will be. */
static int step_all(struct reflector *r)
{
    int64_t now = clock_ms(), next = now + POLL_MAX_MS;
    for (size_t i = 0; i < r->n; i++) {
        int64_t due = follow_step(&r->follows[i], now);
        if (due < next)
            next = due;
    }
    return next <= now ? 0 : (int)(next - now);
}

static void end_all(struct reflector *r)
{
    int left;
    for (CURLMsg *m; (m = curl_multi_info_read(r->multi, &left));) {
        struct follow *f = NULL;
        CURLcode code = m->data.result; /* m ends with the handle's removal */
        if (m->msg != CURLMSG_DONE ||
            curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &f) != CURLE_OK)
            continue;
        follow_done(f, code, clock_ms());
    }
}

static void *reflector_thread(void *ctx)
{
    struct reflector *r = ctx;
    int running;
    thread_name("kube watch", NULL);
    while (!atomic_load(&r->stopping)) {
        /* returns at once when a call has just begun */
        (void)curl_multi_poll(r->multi, NULL, 0, step_all(r), NULL);
        (void)curl_multi_perform(r->multi, &running);
        end_all(r);
    }
    return NULL;
}

static void reflector_free(struct reflector *r)
{
    for (size_t i = 0; i < r->n; i++)
        follow_fini(&r->follows[i]);
    if (r->multi)
        (void)curl_multi_cleanup(r->multi);
    http_target_fini(&r->target);
    kube_access_destroy(r->access);
    (void)pthread_mutex_destroy(r->lock);
    free(r->lock);
    free(r);
}

static int reflector_init(struct reflector *r, const struct kube_config *config,
                          const struct reflector_kind *kinds, size_t n,
                          struct error *err)
{
    r->lock = xmalloc(sizeof *r->lock);
    (void)pthread_mutex_init(r->lock, NULL);
    if (n > REFLECTOR_KINDS_MAX)
        return error_set(err, EINVAL, "%zu kinds, the limit is %d", n,
                         REFLECTOR_KINDS_MAX);
    kube_access_http(config, 0, 0, &r->http);
    int e = kube_access_create(config, &r->access, err);
    if (e == 0)
        e = http_target_init(&r->target, &r->http, err);
    if (e < 0)
        return e;
    r->multi = curl_multi_init();
    if (!r->multi)
        return error_set(err, EIO, "libcurl: no handle");
    (void)curl_multi_setopt(r->multi, CURLMOPT_MAXCONNECTS, 2L * (long)n);
    for (; r->n < n; r->n++) {
        e = follow_init(&r->follows[r->n], r, &kinds[r->n], err);
        if (e < 0) {
            r->n++;
            return e;
        }
    }
    return 0;
}

int reflector_start_tuned(const struct kube_config *config,
                          const struct reflector_kind *kinds, size_t n,
                          const struct reflector_tuning *tuning,
                          struct reflector **ret_reflector, struct error *err)
{
    struct reflector *r = xcalloc(1, sizeof *r);
    r->tuning = *tuning;
    int e = reflector_init(r, config, kinds, n, err);
    *ret_reflector = r; /* its handlers may ask for it at once */
    if (e == 0) {
        int rc = pthread_create(&r->thread, NULL, reflector_thread, r);
        if (rc)
            e = error_errno(err, rc, "reflector: cannot start a thread");
    }
    if (e < 0) {
        *ret_reflector = NULL;
        reflector_free(r);
    }
    return e;
}

int reflector_start(const struct kube_config *config,
                    const struct reflector_kind *kinds, size_t n,
                    struct reflector **ret_reflector, struct error *err)
{
    return reflector_start_tuned(config, kinds, n, &reflector_tuning_default,
                                 ret_reflector, err);
}

void reflector_stop(struct reflector *r)
{
    if (!r)
        return;
    atomic_store(&r->stopping, true);
    (void)curl_multi_wakeup(r->multi);
    (void)pthread_join(r->thread, NULL);
    reflector_free(r);
}

void reflector_relist(struct reflector *r, size_t i)
{
    atomic_store(&r->follows[i].relist, true);
    (void)curl_multi_wakeup(r->multi);
}

bool reflector_is_synced(const struct reflector *r)
{
    bool synced = true;
    hold_lock(r->lock);
    for (size_t i = 0; i < r->n; i++)
        synced &= r->follows[i].state.synced;
    return synced;
}

size_t reflector_n_kinds(const struct reflector *r)
{
    return r->n;
}

void reflector_state(const struct reflector *r, size_t i,
                     struct reflector_state *ret_state)
{
    hold_lock(r->lock);
    *ret_state = r->follows[i].state;
}
