#include "advertiser/act/api/socket_private.h"

#include <string.h>

#include "advertiser/act/api/status_json.h"
#include "lib/io/clock.h"
#include "lib/io/thread_name.h"

/* How long somebody may wait who came while we waited for another version. */
enum { LOOK_MS = 250 };

void wait_post(struct act_socket *s, struct httpd_request *rq, uint64_t version,
               int64_t wait_s)
{
    struct waiting_pods *w = xcalloc(1, sizeof *w);
    const char *namespace = httpd_arg(rq, 0), *name = httpd_arg(rq, 1);
    *w = (struct waiting_pods){
        .rq = rq, .version = version, .due_ms = clock_ms() + wait_s * 1000};
    (void)snprintf(w->namespace, sizeof w->namespace, "%s", namespace);
    (void)snprintf(w->name, sizeof w->name, "%s", name);
    pthread_mutex_lock(&s->lock);
    bool stopping = s->stopping, room = s->n_waits < SOCKET_WAITS_MAX;
    if (!stopping && room) {
        w->next = s->waits;
        s->waits = w;
        s->n_waits++;
        httpd_suspend(rq);
        pthread_cond_signal(&s->wake);
        pthread_mutex_unlock(&s->lock);
        return;
    }
    pthread_mutex_unlock(&s->lock);
    free(w);
    httpd_fail(rq, 503, "%s",
               stopping ? "the advertiser is stopping"
                        : "too many wait already, try again later");
}

/* True when it was answered. */
static bool answer(struct act_socket *s, const struct waiting_pods *w,
                   int64_t now)
{
    struct act_pod_status pod;
    if (s->stopping) {
        httpd_fail(w->rq, 503, "the advertiser is stopping");
    } else if (actuator_find(s->a, w->namespace, w->name, &pod) < 0) {
        httpd_fail(w->rq, 404, "there is no pod %s/%s on this node any more",
                   w->namespace, w->name);
    } else if (pod.version > w->version || now >= w->due_ms) {
        status_json_pod(&pod, httpd_reply(w->rq));
        str_add_c(httpd_reply(w->rq), '\n');
    } else {
        return false;
    }
    httpd_resume(w->rq);
    return true;
}

/* When to look again at the latest. */
static int64_t answer_all_locked(struct act_socket *s)
{
    int64_t now = clock_ms(), next = now + LOOK_MS;
    struct waiting_pods **at = &s->waits;
    while (*at) {
        struct waiting_pods *w = *at;
        if (answer(s, w, now)) {
            *at = w->next;
            s->n_waits--;
            free(w);
            continue;
        }
        if (w->due_ms < next)
            next = w->due_ms;
        at = &w->next;
    }
    return next;
}

static void *waiter(void *arg)
{
    struct act_socket *s = arg;
    thread_name("socket waits", NULL);
    pthread_mutex_lock(&s->lock);
    while (!s->stopping) {
        if (!s->waits) {
            (void)clock_wait(&s->wake, &s->lock, INT64_MAX);
            continue;
        }
        uint64_t version = actuator_version(s->a);
        int64_t next = answer_all_locked(s);
        int64_t ms = next - clock_ms();
        pthread_mutex_unlock(&s->lock);
        if (ms > 0)
            (void)actuator_wait(s->a, version, ms);
        pthread_mutex_lock(&s->lock);
    }
    (void)answer_all_locked(s);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

int waits_start(struct act_socket *s, struct error *err)
{
    int r = pthread_create(&s->waiter, NULL, waiter, s);
    return r ? error_errno(err, r, "cannot start a thread") : 0;
}

void waits_stop(struct act_socket *s)
{
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
    (void)pthread_join(s->waiter, NULL); /* a thread of ours: joinable */
}
