/* What happens between having the Lease and leading.
 *
 * The leader before may have bound pods that our watch has not shown yet.  No
 * call of its own is on its way any more: it ends calls ELECTION_DEADLINE_MS
 * after it began its last renewal, and nobody takes a Lease that was not given
 * back before it was unchanged for ELECTION_DURATION_MS.  So what is bound is
 * asked once more, and our watch must have come as far; only then the places of
 * jobs are held anew. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "extender/app/fabric_files.h"
#include "extender/cluster/cluster_private.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "lib/io/thread_name.h"
#include "lib/kube/jsplit.h"
#include "lib/kube/list.h"

enum {
    PAGE = 250,       /* pods */
    BEHIND_MS = 3000, /* then those that are missing are asked again */
    POLL_MS = 20,
    PATH_MAX_BYTES = 3 * KUBE_CONTINUE_MAX + 256, /* all of it escaped */
};

/* Pods that were bound, or opened, when they were listed. */
struct bound {
    struct cluster *c;
    char **uids;
    size_t n, cap;
    unsigned page; /* objects of one answer: fewer where they are large */
};

static void bound_fini(struct bound *b)
{
    for (size_t i = 0; i < b->n; i++)
        free(b->uids[i]);
    free(b->uids);
    b->uids = NULL;
    b->n = b->cap = 0;
}

static int add_pod(void *ctx, const char *json, size_t size)
{
    struct bound *b = ctx;
    struct kube_pod pod;
    if (kube_pod_read(json, size, &b->c->config.demand, &pod, NULL) < 0)
        return 0; /* the watch says so, too */
    if ((!pod.node[0] && !kube_pod_is_opened(&pod)) ||
        cluster_pods_is_bound(b->c->pods, pod.demand.uid))
        return 0;
    b->uids = xgrow(b->uids, b->n, &b->cap, sizeof(*b->uids));
    b->uids[b->n++] = xstrdup(pod.demand.uid);
    return 0;
}

static int list_page(struct bound *b, struct str *token, struct error *err)
{
    struct http_answer answer = {.body = STR_INIT(KUBE_ANSWER_MAX)};
    struct jsplit split;
    char version[KUBE_VERSION_MAX + 1]; /* any will do */
    cleanup_str struct str path = STR_INIT(PATH_MAX_BYTES);
    str_addf(&path, "/api/v1/pods?labelSelector=biga.dev%%2Frole&limit=%u",
             b->page);
    if (token->size) {
        str_add(&path, "&continue=");
        kube_path_add(&path, str_text(token));
    }
    struct kube_request request = {.method = "GET", .path = str_text(&path)};
    jsplit_init(&split, JSPLIT_LIST, KUBE_OBJECT_MAX, add_pod, b);
    int r = kube_call(b->c->lead.client, &request, &answer, err);
    if (r == 0)
        r = jsplit_feed(&split, answer.body.data, answer.body.size, err);
    if (r == 0)
        r = jsplit_end(&split, err);
    if (r == 0)
        r = kube_list_read(str_text(&split.rest), split.rest.size, version,
                           token, err);
    jsplit_fini(&split);
    str_fini(&answer.body);
    if (r == -EMSGSIZE && b->page > 1)
        b->page = 1 + b->page / 8;
    return r;
}

/* Those of them that our watch does not show so. */
static int list_missing(struct bound *b, struct error *err)
{
    cleanup_str struct str token = STR_INIT(KUBE_CONTINUE_MAX);
    int r;
    bound_fini(b);
    do
        r = list_page(b, &token, err);
    while (r == 0 && token.size && !atomic_load(&b->c->lead.stop));
    return r;
}

static void wait_a_moment(void)
{
    struct timespec t = {.tv_nsec = POLL_MS * 1000000L};
    (void)nanosleep(&t, NULL); /* shorter is no harm */
}

/* Wait until the watch shows them; false after some time: one may have been
 * deleted, so that it never does. */
static bool wait_for_watch(const struct bound *b)
{
    int64_t until = clock_ms() + BEHIND_MS;
    for (size_t i = 0; i < b->n;) {
        if (cluster_pods_is_bound(b->c->pods, b->uids[i]))
            i++;
        else if (clock_ms() >= until || atomic_load(&b->c->lead.stop))
            return false;
        else
            wait_a_moment();
    }
    return true;
}

static void hold_anew(struct cluster *c)
{
    struct writer_op op = {.kind = WRITER_LEAD};
    char jobs[24];
    (void)writer_run(c->config.writer, &op); /* its failures are in the log */
    (void)snprintf(jobs, sizeof jobs, "%zu", op.n_out);
    log_event(LOG_INFO, "places-held", "jobs", jobs, NULL);
}

static void *lead_thread(void *ctx)
{
    struct cluster_lead *l = ctx;
    struct bound bound = {.c = l->cluster, .page = PAGE};
    struct error err = {0};
    bool ready = false;
    thread_name("begin to lead", NULL);
    while (!ready && !atomic_load(&l->stop)) {
        if (list_missing(&bound, &err) == 0) {
            ready = wait_for_watch(&bound);
            continue;
        }
        log_event(LOG_WARN, "leading-delayed", "error", err.text, NULL);
        for (int i = 0; i < 25 && !atomic_load(&l->stop); i++)
            wait_a_moment();
    }
    bound_fini(&bound);
    if (ready) {
        fabric_files_poll(l->cluster->config.fabric);
        hold_anew(l->cluster);
        pair_controller_lead(l->cluster->pair_controller);
        waker_lead(l->cluster->waker);
        gate_controller_wake(l->cluster->gate);
        atomic_store(&l->done, true);
    }
    return NULL;
}

/* Called with the lock. */
static void lead_begin(struct cluster_lead *l)
{
    if (l->running || atomic_load(&l->ended) || !cluster_is_synced(l->cluster))
        return;
    atomic_store(&l->stop, false);
    l->running = pthread_create(&l->thread, NULL, lead_thread, l) == 0;
}

static void lead_join(struct cluster_lead *l)
{
    hold_lock(&l->lock);
    atomic_store(&l->stop, true);
    if (l->running)
        (void)pthread_join(l->thread, NULL); /* it was started, once */
    l->running = false;
}

int cluster_lead(void *ctx)
{
    struct cluster *c = ctx;
    struct cluster_lead *l = &c->lead;
    if (atomic_load(&l->ended)) /* the Lease is renewed meanwhile */
        return -EAGAIN;
    if (atomic_load(&l->done))
        return 0;
    pthread_mutex_lock(&l->lock);
    l->cluster = c;
    lead_begin(l);
    pthread_mutex_unlock(&l->lock);
    return -EAGAIN; /* without a thread it is tried again */
}

void cluster_follow(void *ctx)
{
    struct cluster *c = ctx;
    struct writer_op op = {.kind = WRITER_FOLLOW};
    lead_join(&c->lead);
    atomic_store(&c->lead.done, false);
    (void)writer_run(c->config.writer, &op); /* its failures are in the log */
}

void cluster_lead_end(struct cluster *c)
{
    atomic_store(&c->lead.ended, true);
    lead_join(&c->lead);
}
