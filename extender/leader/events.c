#include "extender/leader/events.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/backoff.h"
#include "lib/base/hash.h"
#include "lib/base/jwrite.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/base/strmap.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "lib/io/thread_name.h"
#include "lib/kube/client.h"

enum {
    BUSY_MS = 200, /* then it is asked again whether there is time, or our
                    * lease was renewed */
    BODY_MAX = 16384,
    AGAIN_MS = 5000, /* until what is told once is tried again; doubled each
                      * time that the API server does not take it */
    AGAIN_MAX_MS = 5 * 60000,
    FORGET_MS = 10 * 60000, /* an entry that nothing was added to */
    KEY_MAX = DEMAND_UID_MAX + 8,
};

/* Told `once` of a pod, whichever replica leads: what is said again in the same
 * words counts for nothing, and what cannot be written yet, as by one that
 * does not lead, is tried again while the pod is spoken of, less and less often
 * when the API server refuses it.  Of the others the leader tries those again
 * that the API server did not answer. */
static const struct {
    const char *word;
    bool warning, once;
} reasons[EVENTS_REASONS] = {
    [EVENTS_ALIGNED] = {"Aligned", false, false},
    [EVENTS_ALIGNMENT_DEGRADED] = {"AlignmentDegraded", true, false},
    [EVENTS_UNALIGNED] = {"Unaligned", true, false},
    [EVENTS_REFUSED] = {"Refused", true, false},
    [EVENTS_XPU_POD_FAILED] = {"XpuPodFailed", true, false},
    [EVENTS_XPU_POD_GONE] = {"XpuPodGone", true, false},
    [EVENTS_BUDDY_MADE] = {"BuddyMade", false, false},
    [EVENTS_BUDDY_FAILED] = {"BuddyFailed", true, false},
    [EVENTS_PAIR_ENDED] = {"PairEnded", false, false},
    [EVENTS_PAIR_NOT_ENDED] = {"PairNotEnded", true, false},
    [EVENTS_CARD_LOST] = {"CardLost", true, false},
    [EVENTS_CARD_BACK] = {"CardAnswers", false, false},
    [EVENTS_EVICTED] = {"CardLostEvicted", true, false},
    [EVENTS_NOT_EVICTED] = {"CardLostNotEvicted", true, false},
    [EVENTS_DRAINED] = {"CardDrainedEvicted", true, false},
    [EVENTS_NOT_DRAINED] = {"CardDrainedNotEvicted", true, false},
    [EVENTS_PREEMPTED] = {"Preempted", true, false},
    [EVENTS_UNKNOWN_KEY] = {"UnknownKey", true, true},
    [EVENTS_ALIGNMENT_LOST] = {"AlignmentLost", true, true},
    [EVENTS_OVERFULL] = {"Overfull", true, false},
};

/* One pod and reason: on a list of what waits, or resting until something is
 * added.  All lists are in the order of `due_ms`, oldest first, but for the
 * short delays of refusals and for what is tried again. */
struct entry {
    char key[KEY_MAX];
    struct entry *before, *after;
    bool waiting; /* there is something to write */
    enum events_reason reason;
    char namespace[DEMAND_NAMESPACE_MAX + 1];
    char pod[DEMAND_NAME_MAX + 1];
    char uid[DEMAND_UID_MAX + 1];
    char name[DEMAND_NAME_MAX + 1]; /* of the Event, once it is there */
    bool unsure;     /* or it may be there: the answer of its POST was lost */
    int64_t first_s; /* Unix time */
    int64_t due_ms;  /* not to be written before */
    int64_t touched_ms;
    unsigned failures; /* in a row */
    uint32_t count;
    char text[EVENTS_TEXT_MAX + 1];
};

struct list {
    struct entry *first, *last;
    size_t n;
};

struct events {
    struct events_config config;
    struct kube_client *client;
    struct http_answer answer;
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;
    bool stopping;
    struct strmap by_key;
    struct list warnings, once, others, resting;
    int64_t tokens_ms; /* when the next may be written */
};

static void list_remove(struct list *l, struct entry *x)
{
    *(x->before ? &x->before->after : &l->first) = x->after;
    *(x->after ? &x->after->before : &l->last) = x->before;
    x->before = x->after = NULL;
    l->n--;
}

static void list_append(struct list *l, struct entry *x)
{
    x->after = NULL;
    x->before = l->last;
    *(l->last ? &l->last->after : &l->first) = x;
    l->last = x;
    l->n++;
}

static struct list *list_of(struct events *e, const struct entry *x)
{
    if (!x->waiting)
        return &e->resting;
    if (reasons[x->reason].once)
        return &e->once;
    return reasons[x->reason].warning ? &e->warnings : &e->others;
}

static void entry_move(struct events *e, struct entry *x, bool waiting)
{
    list_remove(list_of(e, x), x);
    x->waiting = waiting;
    list_append(list_of(e, x), x);
}

static void entry_destroy(struct events *e, struct entry *x)
{
    list_remove(list_of(e, x), x);
    (void)strmap_remove(&e->by_key, x->key);
    free(x);
}

/* --- posting ------------------------------------------------------------ */

static void make_key(const char *uid, enum events_reason reason,
                     char key[KEY_MAX])
{
    (void)snprintf(key, KEY_MAX, "%.*s/%d", DEMAND_UID_MAX, uid, (int)reason);
}

static struct entry *entry_get(struct events *e, const struct events_pod *pod,
                               enum events_reason reason, int64_t now_ms)
{
    char key[KEY_MAX];
    make_key(pod->uid, reason, key);
    struct entry *x = strmap_get(&e->by_key, key);
    if (x)
        return x;
    if (e->by_key.n >= EVENTS_KEPT_MAX) {
        if (!e->resting.first)
            return NULL;
        entry_destroy(e, e->resting.first);
    }
    x = xcalloc(1, sizeof *x);
    memcpy(x->key, key, sizeof x->key);
    x->reason = reason;
    (void)snprintf(x->namespace, sizeof x->namespace, "%s", pod->namespace);
    (void)snprintf(x->pod, sizeof x->pod, "%s", pod->name);
    (void)snprintf(x->uid, sizeof x->uid, "%s", pod->uid);
    x->due_ms = now_ms + (reason == EVENTS_REFUSED ? EVENTS_DELAY_MS : 0);
    (void)strmap_put(&e->by_key, x->key, x);
    list_append(&e->resting, x);
    return x;
}

/* The pod has been bound: drop the refusal that was not written yet. */
static void drop_refusal(struct events *e, const char *uid)
{
    char key[KEY_MAX];
    make_key(uid, EVENTS_REFUSED, key);
    struct entry *x = strmap_get(&e->by_key, key);
    if (x && x->waiting)
        entry_destroy(e, x);
}

static bool is_said(const struct entry *x, const char *text)
{
    return x->count > 0 && strncmp(x->text, text, EVENTS_TEXT_MAX) == 0;
}

void events_post_named(struct events *e, const struct events_pod *pod,
                       enum events_reason reason, const char *text)
{
    if (!e || pod->uid[0] == '\0')
        return;
    if (e->config.told)
        e->config.told(e->config.told_ctx, pod, reason, text);
    int64_t now_ms = clock_ms();
    hold_lock(&e->lock);
    if (reason <= EVENTS_UNALIGNED)
        drop_refusal(e, pod->uid);
    bool full = !reasons[reason].warning && e->others.n >= EVENTS_WAITING_MAX;
    struct entry *x = full ? NULL : entry_get(e, pod, reason, now_ms);
    if (!x)
        return;
    x->touched_ms = now_ms;
    if (reasons[reason].once && is_said(x, text))
        return;
    x->count++;
    (void)snprintf(x->text, sizeof x->text, "%s", text);
    if (!x->waiting)
        entry_move(e, x, true);
    pthread_cond_signal(&e->wake);
}

void events_post(struct events *e, const struct demand *pod,
                 enum events_reason reason, const char *text)
{
    const struct events_pod named = {pod->namespace, pod->name, pod->uid};
    events_post_named(e, &named, reason, text);
}

/* --- writing ------------------------------------------------------------ */

static void add_time(struct str *out, const char *key, int64_t unix_s)
{
    char text[CLOCK_UTC_MAX];
    clock_format_utc(unix_s, text);
    jwrite_text(out, key, text);
}

/* What changes each time. */
static void add_news(struct str *out, const struct entry *x, int64_t now_s)
{
    jwrite_uint(out, "count", x->count);
    add_time(out, "lastTimestamp", now_s);
    jwrite_text(out, "message", x->text);
}

static void write_new(const struct events *e, const struct entry *x,
                      int64_t now_s, struct str *out)
{
    str_add(out, "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{");
    jwrite_text(out, "name", x->name);
    jwrite_text(out, "namespace", x->namespace);
    str_add(out,
            "},\"involvedObject\":{\"apiVersion\":\"v1\",\"kind\":\"Pod\"");
    jwrite_text(out, "namespace", x->namespace);
    jwrite_text(out, "name", x->pod);
    jwrite_text(out, "uid", x->uid);
    str_add(out, "},\"source\":{\"component\":\"biga-extender\"}");
    jwrite_text(out, "reportingComponent", "biga-extender");
    jwrite_text(out, "reportingInstance", e->config.reporter);
    jwrite_text(out, "type", reasons[x->reason].warning ? "Warning" : "Normal");
    jwrite_text(out, "reason", reasons[x->reason].word);
    add_time(out, "firstTimestamp", x->first_s);
    add_news(out, x, now_s);
    str_add_c(out, '}');
}

/* "POD.HASH", cut to a name's limit, another one for each reason.  For
 * reasons told once the hash is of the text, so that all replicas give the
 * same name. */
static void name_event(struct entry *x, int64_t now_s)
{
    uint64_t of = reasons[x->reason].once ? hash_bytes(x->text, strlen(x->text))
                                          : (uint64_t)now_s | 1;
    uint64_t h = hash_mix(hash_bytes(x->key, strlen(x->key)), of);
    (void)snprintf(x->name, sizeof x->name, "%.236s.%016" PRIx64, x->pod, h);
    x->first_s = now_s;
}

static int send(struct events *e, const char *method, const char *name,
                const struct entry *x, const struct str *body,
                struct error *err)
{
    cleanup_str struct str path = STR_INIT(1024);
    kube_path_object(&path, "/api/v1", x->namespace, "events", name);
    struct kube_request request = {
        .method = method,
        .path = str_text(&path),
        .type = name ? KUBE_MERGE_PATCH : KUBE_JSON,
        .body = body->data,
        .body_size = body->size,
        .timeout_ms = e->config.call_ms,
    };
    return kube_call(e->client, &request, &e->answer, err);
}

static int send_news(struct events *e, const struct entry *x, int64_t now_s,
                     struct error *err)
{
    cleanup_str struct str body = STR_INIT(BODY_MAX);
    str_add_c(&body, '{');
    add_news(&body, x, now_s);
    str_add_c(&body, '}');
    return send(e, "PATCH", x->name, x, &body, err);
}

static int send_new(struct events *e, struct entry *x, int64_t now_s,
                    struct error *err)
{
    cleanup_str struct str body = STR_INIT(BODY_MAX);
    bool once = reasons[x->reason].once, repeated = x->unsure && !once;
    if (!repeated)
        name_event(x, now_s);
    write_new(e, x, now_s, &body);
    int r = send(e, "POST", NULL, x, &body, err);
    if (r == -EEXIST && once) /* another replica has written it */
        r = 0;
    if (r == -EEXIST && repeated) /* our last POST has, perhaps with less */
        r = send_news(e, x, now_s, err);
    x->unsure = kube_error_passes(r);
    return r;
}

/* `x` is a copy: the entry may be changed or gone meanwhile. */
static int write_event(struct events *e, struct entry *x)
{
    struct error err = {0};
    int64_t now_s = clock_wall_s();
    int r = -ENOENT;
    if (x->name[0] && !x->unsure && !reasons[x->reason].once)
        r = send_news(e, x, now_s, &err);
    if (r == -ENOENT) /* a new one, or the API server has removed the old one
                       * by its age */
        r = send_new(e, x, now_s, &err);
    if (r < 0)
        log_event(LOG_WARN, "event-not-written", "namespace", x->namespace,
                  "pod", x->pod, "reason", reasons[x->reason].word, "error",
                  err.text, NULL);
    return r;
}

/* The first entry that is due: of warnings, then of reasons told once (up to
 * one for each pod), then of others; NULL: `*ret_due` is when there will be
 * one. */
static struct entry *find_due(struct events *e, int64_t now_ms,
                              int64_t *ret_due)
{
    struct list *lists[] = {&e->warnings, &e->once, &e->others};
    *ret_due = INT64_MAX;
    size_t n = ARRAY_LEN(lists);
    if (e->others.n && e->config.is_busy && e->config.is_busy(e->config.ctx)) {
        n--;
        *ret_due = now_ms + BUSY_MS;
    }
    for (size_t i = 0; i < n; i++)
        for (struct entry *x = lists[i]->first; x; x = x->after) {
            if (x->due_ms <= now_ms)
                return x;
            if (x->due_ms < *ret_due)
                *ret_due = x->due_ms;
        }
    return NULL;
}

static void forget_old(struct events *e, int64_t now_ms)
{
    while (e->resting.first &&
           now_ms - e->resting.first->touched_ms > FORGET_MS)
        entry_destroy(e, e->resting.first);
}

static bool may_write(const struct events *e, int64_t call_ms)
{
    return !e->config.may_write || e->config.may_write(e->config.ctx, call_ms);
}

static bool is_to_repeat(const struct events *e, const struct entry *x,
                         int result)
{
    bool room = e->warnings.n + e->others.n < EVENTS_WAITING_MAX;
    return reasons[x->reason].once || (room && kube_error_passes(result));
}

static void write_again(struct events *e, struct entry *x, int64_t due_ms)
{
    x->due_ms = due_ms;
    entry_move(e, x, true);
}

/* Write what is due; the lock is held, but not during the call. */
static void write_one(struct events *e, struct entry *x, int64_t now_ms)
{
    struct entry copy = *x;
    x->due_ms = now_ms + EVENTS_PAUSE_MS;
    entry_move(e, x, false);
    e->tokens_ms = now_ms + 1000 / EVENTS_PER_SECOND;
    pthread_mutex_unlock(&e->lock);
    bool may = may_write(e, e->config.call_ms);
    /* our lease might end before the call does: soon it is renewed, or another
     * leads */
    bool late = !may && may_write(e, 0);
    int r = may ? write_event(e, &copy) : -EPERM;
    pthread_mutex_lock(&e->lock);
    x = strmap_get(&e->by_key, copy.key);
    if (!x)
        return;
    x->unsure = copy.unsure;
    if (r == 0 || copy.unsure) {
        memcpy(x->name, copy.name, sizeof x->name);
        x->first_s = copy.first_s;
    }
    if (r == 0) {
        x->failures = 0;
    } else if (late) {
        write_again(e, x, now_ms + BUSY_MS);
    } else if (!x->waiting && is_to_repeat(e, x, r) &&
               now_ms - x->touched_ms <= FORGET_MS) {
        x->failures += may; /* a replica that does not lead has not tried */
        write_again(
            e, x, now_ms + backoff_grown(AGAIN_MS, AGAIN_MAX_MS, x->failures));
    }
}

static void *events_thread(void *ctx)
{
    struct events *e = ctx;
    thread_name("kube events", NULL);
    hold_lock(&e->lock);
    while (!e->stopping) {
        int64_t now_ms = clock_ms(), due_ms;
        forget_old(e, now_ms);
        struct entry *x = find_due(e, now_ms, &due_ms);
        if (x && e->tokens_ms <= now_ms)
            write_one(e, x, now_ms);
        else
            (void)clock_wait(&e->wake, &e->lock, x ? e->tokens_ms : due_ms);
    }
    return NULL;
}

/* --- start and stop ----------------------------------------------------- */

static void destroy(struct events *e)
{
    struct list *lists[] = {&e->warnings, &e->once, &e->others, &e->resting};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        while (lists[i]->first)
            entry_destroy(e, lists[i]->first);
    strmap_fini(&e->by_key);
    kube_client_destroy(e->client);
    str_fini(&e->answer.body);
    (void)pthread_cond_destroy(&e->wake);
    (void)pthread_mutex_destroy(&e->lock);
    free(e);
}

int events_start(const struct events_config *config, struct events **ret_events,
                 struct error *err)
{
    struct events *e = xcalloc(1, sizeof *e);
    e->config = *config;
    if (e->config.call_ms == 0)
        e->config.call_ms = EVENTS_CALL_MS;
    e->answer.body.max = KUBE_ANSWER_MAX;
    (void)pthread_mutex_init(&e->lock, NULL); /* cannot fail on Linux */
    clock_wait_init(&e->wake);
    int r = kube_client_create(config->kube, e->config.call_ms, &e->client,
                               err);
    if (r == 0) {
        int rc = pthread_create(&e->thread, NULL, events_thread, e);
        r = rc ? error_errno(err, rc, "starting the thread of events") : 0;
    }
    if (r < 0) {
        destroy(e);
        return r;
    }
    *ret_events = e;
    return 0;
}

void events_stop(struct events *e)
{
    if (!e)
        return;
    pthread_mutex_lock(&e->lock);
    e->stopping = true;
    pthread_cond_signal(&e->wake);
    pthread_mutex_unlock(&e->lock);
    (void)pthread_join(e->thread, NULL); /* it was started, once */
    destroy(e);
}
