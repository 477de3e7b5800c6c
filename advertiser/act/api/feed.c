#include "advertiser/act/api/feed_private.h"

#include <inttypes.h>
#include <string.h>

#include "advertiser/act/pod/item.h"
#include "lib/base/hash.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "lib/io/thread_name.h"
#include "model/pod/podfeed.h"

enum {
    WAIT_S = 25,
    GAP_MS = 200,
    AGAIN_MS = 2000,
    KEEP_BUFFER = 64 << 10,
    PATH_SIZE_MAX = 8 << 10,
    NEWS_MS = 100, /* an answer without news that is faster counts as one that
                    * asks us to slow down */
};

/* --- both directions ------------------------------------------------------ */

int64_t feed_line_failed(struct feed *f, struct feed_line *l,
                         const struct error *err)
{
    if (strcmp(err->text, l->last.text) != 0) {
        l->last = *err;
        log_event(LOG_WARN, "feed-failed", "node", f->config.node, "what",
                  l->what, "error", err->text, NULL);
    }
    return backoff_fail(&l->backoff);
}

void feed_line_works(struct feed *f, struct feed_line *l)
{
    backoff_succeed(&l->backoff);
    if (!*l->last.text)
        return;
    l->last.text[0] = '\0';
    log_event(LOG_INFO, "feed-works", "node", f->config.node, "what", l->what,
              NULL);
}

int feed_line_status(struct feed_line *l, const struct http_answer *a,
                     long wanted, struct error *err)
{
    cleanup_str struct str why = STR_INIT(ERROR_TEXT_MAX / 2);
    if (a->status == wanted)
        return 0;
    /* the next try shows the certificate as it then is */
    if (a->status == 401 || a->status == 403)
        http_client_reconnect(l->http);
    http_answer_error(a, &why);
    return error_set(err, EPROTO, "the extender answered %ld: %s", a->status,
                     str_text(&why));
}

bool feed_sleep(struct feed *f, int64_t ms)
{
    int64_t due = clock_ms() + ms;
    pthread_mutex_lock(&f->lock);
    while (!atomic_load(&f->stopping) &&
           clock_wait(&f->stop_wake, &f->lock, due))
        ;
    pthread_mutex_unlock(&f->lock);
    return !atomic_load(&f->stopping);
}

/* --- what is wanted ------------------------------------------------------- */

/* What of one answer could not be had. */
struct outcome {
    struct refusal *list;
    size_t n, cap;
    bool passes;         /* the reason of one may be gone soon */
    bool goes_on;        /* another answer has what this one has no room for */
    const char **spared; /* UIDs of the wanted that are not had: what runs of
                          * them goes on */
    size_t n_spared;
};

static void add(struct outcome *o, const struct refusal *like, const char *uid,
                const char *message)
{
    o->list = xgrow(o->list, o->n, &o->cap, sizeof *o->list);
    struct refusal *r = &o->list[o->n++];
    *r = *like;
    (void)snprintf(r->uid, sizeof r->uid, "%s", uid);
    (void)snprintf(r->message, sizeof r->message, "%s", message);
}

static void outcome_add(struct outcome *o, const char *uid, int result,
                        const struct error *err)
{
    static const struct {
        int result;
        const char *state, *reason;
        bool passes;
    } kinds[] = {
        {-ENOENT, "failed", "NoSuchCard", true},
        {-EBUSY, "wanted", "CardDrained", true},
        {-EEXIST, "wanted", "NameInUse", true},
        {-ENODATA, "wanted", "ConfigMissing", true},
        {-EINVAL, "failed", "SpecRefused", false},
        {-EPERM, "failed", "NotAllowed", false},
        {0, "wanted", "NotWrittenDown", true}, /* any other */
    };
    size_t k = 0;
    while (kinds[k].result && kinds[k].result != result)
        k++;
    const struct refusal like = {.state = kinds[k].state,
                                 .reason = kinds[k].reason};
    add(o, &like, uid, err->text);
    o->passes |= kinds[k].passes;
}

/* It is to end and nobody here knows it: then it is gone, once nothing of it
 * is left. */
static void outcome_end(struct feed *f, struct outcome *o,
                        const struct act_item *item)
{
    const struct refusal gone = {.state = act_state_name(ACT_GONE),
                                 .reason = ""};
    const struct refusal stays = {.state = act_state_name(ACT_STOPPING),
                                  .reason = "LeftBehind"};
    struct error err = {0};
    int r = actuator_left(f->a, item->pod.place, item->pod.uid, &err);
    add(o, r == 0 ? &gone : &stays, item->pod.uid, err.text);
    o->passes |= r < 0;
}

static void apply_item(struct feed *f, struct act_item *item, struct outcome *o)
{
    struct error err = {0};
    int r;
    if (item->fault && !item->stop) {
        r = error_set(&err, EINVAL, "%s", item->fault);
    } else if (item->stop) {
        r = item->keep
                ? actuator_end(f->a, item->pod.uid, item->grace_s, &err)
                : actuator_unwant(f->a, item->pod.uid, item->grace_s, &err);
        if (r == -ENOENT) {
            outcome_end(f, o, item);
            return;
        }
    } else if (item->later) {
        if (actuator_knows(f->a, item->pod.uid))
            return;
        o->spared[o->n_spared++] = item->pod.uid;
        o->passes |= o->goes_on; /* else asking again brings nothing */
        return;
    } else {
        item->pod.owner = FEED_OWNER;
        r = actuator_want(f->a, &item->pod, &err);
    }
    if (r < 0)
        outcome_add(o, item->pod.uid, r, &err);
    /* also what would be refused now: it was begun when it was not */
    if (r < 0 && !item->stop)
        o->spared[o->n_spared++] = item->pod.uid;
}

static int text_order(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_listed(const char *const *uids, size_t n, const char *uid)
{
    return bsearch(&uid, uids, n, sizeof *uids, text_order) != NULL;
}

/* What is gone from here and from the extender need not be remembered. */
static void forget_gone(struct feed *f, const char *const *uids, size_t n)
{
    cleanup_free struct act_pod_status *pods = NULL;
    size_t n_pods = actuator_list(f->a, &pods);
    for (size_t i = 0; i < n_pods; i++) {
        struct error ignored; /* the next answer tries again */
        if (pods[i].state == ACT_GONE &&
            strcmp(pods[i].owner, FEED_OWNER) == 0 &&
            !is_listed(uids, n, pods[i].uid))
            (void)actuator_forget(f->a, pods[i].uid, &ignored);
    }
}

static void hand_over(struct feed *f, struct outcome *o, bool resend)
{
    hold_lock(&f->lock);
    free(f->refusals);
    f->refusals = o->list;
    f->n_refusals = o->n;
    f->refusals_new = f->poked = true;
    f->resend |= resend;
    pthread_cond_signal(&f->tell_wake);
}

/* There is nothing new, and the extender asks for everything all the same: it
 * has not understood all that it was told. */
static void tell_again(struct feed *f)
{
    hold_lock(&f->lock);
    f->resend = f->poked = true;
    pthread_cond_signal(&f->tell_wake);
}

/* True when something of it is to be tried again soon. */
static bool apply(struct feed *f, struct act_answer *answer)
{
    struct outcome o = {.spared = xcalloc(answer->n + 1, sizeof *o.spared),
                        .goes_on = *answer->next};
    struct error err = {0};
    cleanup_free const char **uids = xcalloc(answer->n + 1, sizeof *uids);
    for (size_t i = 0; i < answer->n; i++)
        uids[i] = answer->items[i].pod.uid;
    qsort(uids, answer->n, sizeof *uids, text_order);
    /* those that end make room, names for example */
    if (actuator_keep(f->a, FEED_OWNER, uids, answer->n, &err) < 0) {
        log_event(LOG_ERROR, "feed-keep-failed", "node", f->config.node,
                  "error", err.text, NULL);
        o.passes = true;
    }
    forget_gone(f, uids, answer->n);
    for (size_t i = 0; i < answer->n; i++)
        apply_item(f, &answer->items[i], &o);
    actuator_told(f->a, o.spared, o.n_spared);
    free(o.spared);
    hand_over(f, &o, answer->resend);
    return o.passes;
}

/* --- logs of pods that are gone ------------------------------------------- */

/* Of which pods it was asked. */
struct kept {
    char uids[PODFEED_KEPT_MAX][ACT_UID_MAX + 1];
    size_t n;
};

/* All of them in turn. */
static void kept_ask(struct feed *f, struct kept *ret_kept, struct str *path)
{
    cleanup_free char(*uids)[ACT_UID_MAX + 1] = NULL;
    size_t n = f->asks_kept ? actuator_saved_logs(f->a, FEED_OWNER, &uids) : 0;
    ret_kept->n = n < PODFEED_KEPT_MAX ? n : PODFEED_KEPT_MAX;
    for (size_t i = 0; i < ret_kept->n; i++) {
        memcpy(ret_kept->uids[i], uids[(f->kept_at + i) % n], sizeof *uids);
        str_addf(path, "%s%s", i ? "," : "&kept=", ret_kept->uids[i]);
    }
    f->kept_at = n ? (f->kept_at + ret_kept->n) % n : 0;
}

/* Pods that were deleted are not to be seen any more. */
static void kept_drop(struct feed *f, const struct kept *asked,
                      const struct act_answer *answer)
{
    struct error err = {0};
    f->asks_kept = answer->has_kept;
    for (size_t i = 0; answer->has_kept && i < asked->n; i++) {
        bool kept = false;
        for (size_t k = 0; k < answer->n_kept && !kept; k++)
            kept = strcmp(answer->kept[k], asked->uids[i]) == 0;
        if (!kept && actuator_drop_logs(f->a, asked->uids[i], &err) < 0)
            log_event(LOG_ERROR, "feed-keep-failed", "node", f->config.node,
                      "error", err.text, NULL);
    }
}

/* --- asking --------------------------------------------------------------- */

enum asking {
    ASK_ALL,   /* whatever the extender has, now */
    ASK_AGAIN, /* the same, from one that knows us */
    ASK_NEWS,  /* once there are any */
};

/* Ask once and do what is said; `*ret_pause_ms` is how long to wait before the
 * next time. */
static int ask(struct feed *f, enum asking how, struct http_answer *a,
               int64_t *ret_pause_ms, struct error *err)
{
    const struct feed_config *c = &f->config;
    uint64_t version = how == ASK_ALL ? 0 : f->version;
    unsigned wait_s = how == ASK_NEWS ? c->wait_s : 0;
    int64_t began = clock_ms();
    bool goes_on = how == ASK_AGAIN && f->next[0];
    struct kept kept;
    cleanup_str struct str path = STR_INIT(PATH_SIZE_MAX);
    str_addf(&path, "/v1/nodes/%s/pods?version=%" PRIu64 "&wait=%u%s%s",
             c->node, version, wait_s, goes_on ? "&from=" : "",
             goes_on ? f->next : "");
    kept_ask(f, &kept, &path);
    const struct http_request rq = {
        .method = "GET",
        .path = str_text(&path),
        .timeout_ms = wait_s * 1000 + c->http.timeout_ms,
    };
    int r = http_send(f->ask.http, &rq, a, err);
    if (r == 0)
        r = feed_line_status(&f->ask, a, 200, err);
    struct act_answer answer;
    if (r == 0)
        r = act_answer_read(str_text(&a->body), a->body.size, &answer, err);
    if (r < 0)
        return r;
    bool again = false;
    bool news = how != ASK_NEWS || answer.version != version;
    *ret_pause_ms = 0;
    if (news)
        again = apply(f, &answer);
    else if (answer.resend)
        tell_again(f);
    if (!news && clock_ms() - began < NEWS_MS)
        *ret_pause_ms = c->backoff_min_ms;
    f->version = answer.version;
    kept_drop(f, &kept, &answer);
    (void)snprintf(f->next, sizeof f->next, "%s", answer.next);
    act_answer_fini(&answer);
    if (again)
        *ret_pause_ms = c->again_ms;
    return again;
}

void *feed_ask(void *feed)
{
    struct feed *f = feed;
    struct http_answer a = {.body = STR_INIT(ITEM_ANSWER_MAX)};
    thread_name("feed ask", NULL);
    /* also after an outage: a number of an extender's life before may be one
     * of its next */
    enum asking how = ASK_ALL;
    while (!atomic_load(&f->stopping)) {
        struct error err = {0};
        int64_t pause_ms = 0;
        int r = ask(f, how, &a, &pause_ms, &err);
        if (a.body.cap > KEEP_BUFFER) { /* such news is rare */
            str_fini(&a.body);
            a.body.max = ITEM_ANSWER_MAX;
        }
        if (atomic_load(&f->stopping))
            break;
        how = r < 0 ? ASK_ALL : r > 0 ? ASK_AGAIN : ASK_NEWS;
        if (r < 0)
            pause_ms = feed_line_failed(f, &f->ask, &err);
        else
            feed_line_works(f, &f->ask);
        if (pause_ms > 0 && !feed_sleep(f, pause_ms))
            break;
    }
    str_fini(&a.body);
    return NULL;
}

/* --- from start to end -------------------------------------------------- */

static int line_open(struct feed *f, struct feed_line *l, const char *what,
                     struct error *err)
{
    struct http_config http = f->config.http;
    http.stop = &f->stopping;
    http.answer_max = ITEM_ANSWER_MAX;
    l->what = what;
    l->backoff = (struct backoff){
        .min_ms = f->config.backoff_min_ms,
        .max_ms = f->config.backoff_max_ms,
        .random = hash_bytes(f->config.node, strlen(f->config.node)) ^
                  (uint64_t)clock_ns(),
    };
    return http_client_open(&http, &l->http, err);
}

static void feed_free(struct feed *f)
{
    http_client_destroy(f->ask.http);
    http_client_destroy(f->tell.http);
    (void)pthread_cond_destroy(&f->stop_wake);
    (void)pthread_cond_destroy(&f->tell_wake);
    (void)pthread_mutex_destroy(&f->lock);
    free(f->refusals);
    free(f);
}

static void feed_order_stop(struct feed *f)
{
    hold_lock(&f->lock);
    atomic_store(&f->stopping, true);
    pthread_cond_broadcast(&f->stop_wake);
    pthread_cond_broadcast(&f->tell_wake);
}

static int start_threads(struct feed *f, struct error *err)
{
    int r = pthread_create(&f->asker, NULL, feed_ask, f);
    if (r == 0) {
        r = pthread_create(&f->teller, NULL, feed_tell, f);
        if (r == 0)
            return 0;
        feed_order_stop(f);
        (void)pthread_join(f->asker, NULL); /* a thread of ours: joinable */
    }
    return error_errno(err, r, "cannot start a thread");
}

int feed_start(struct actuator *a, const struct feed_config *config,
               struct feed **ret_feed, struct error *err)
{
    struct feed *f = xcalloc(1, sizeof *f);
    struct feed_config *c = &f->config;
    *c = *config;
    if (!c->wait_s)
        c->wait_s = WAIT_S;
    if (!c->backoff_min_ms)
        c->backoff_min_ms = FEED_BACKOFF_MIN_MS;
    if (!c->backoff_max_ms)
        c->backoff_max_ms = FEED_BACKOFF_MAX_MS;
    if (!c->gap_ms)
        c->gap_ms = GAP_MS;
    if (!c->again_ms)
        c->again_ms = AGAIN_MS;
    f->a = a;
    f->poked = true; /* how the places are */
    (void)pthread_mutex_init(&f->lock, NULL);
    clock_wait_init(&f->stop_wake);
    clock_wait_init(&f->tell_wake);
    int r = line_open(f, &f->ask, "pods", err);
    if (r == 0)
        r = line_open(f, &f->tell, "status", err);
    if (r == 0)
        r = start_threads(f, err);
    if (r < 0) {
        feed_free(f);
        return r;
    }
    *ret_feed = f;
    return 0;
}

void feed_poke(struct feed *f)
{
    if (!f)
        return;
    hold_lock(&f->lock);
    f->poked = true;
    pthread_cond_signal(&f->tell_wake);
}

void feed_stop(struct feed *f)
{
    if (!f)
        return;
    feed_order_stop(f);
    (void)pthread_join(f->asker, NULL); /* threads of ours: joinable */
    (void)pthread_join(f->teller, NULL);
    feed_free(f);
}
