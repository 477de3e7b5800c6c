#include "extender/history/history_cluster.h"

#include <stdlib.h>
#include <string.h>

#include "extender/history/history_record_private.h"
#include "lib/base/mem.h"
#include "lib/base/strmap.h"

/* A pod as it was told of last. */
struct seen {
    char uid[DEMAND_UID_MAX + 1];
    char pod[HISTORY_OBJECT_MAX + 1], job[HISTORY_OBJECT_MAX + 1];
    char node[DEMAND_NAME_MAX + 1];
    int32_t pair;
    bool ready, over;
};

struct history_cluster {
    struct history *history;
    struct strmap pods; /* struct seen by uid */
    bool listed;        /* what is told from now on has just happened */
};

struct history_cluster *history_cluster_create(struct history *h)
{
    struct history_cluster *c = xcalloc(1, sizeof *c);
    c->history = h;
    return c;
}

void history_cluster_destroy(struct history_cluster *c)
{
    if (!c)
        return;
    strmap_fini_with(&c->pods, free);
    free(c);
}

static void tell(struct history_cluster *c, const struct seen *s,
                 enum history_reason reason, const char *text)
{
    history_post(c->history, &(struct history_event){.kind = HISTORY_POD,
                                                     .reason = reason,
                                                     .object = s->pod,
                                                     .node = s->node,
                                                     .job = s->job,
                                                     .pair = s->pair,
                                                     .message = text,
                                                     .again = !c->listed});
}

static void add_text(struct str *out, const struct jtext *t)
{
    if (!t->data)
        return;
    cleanup_free char *text = xmalloc(t->size + 1);
    str_add(out, out->size ? ": " : "");
    str_add_n(out, text, jtext_decode(t, text));
}

/* "Reason: message", as far as it says them. */
static void tell_state(struct history_cluster *c, const struct seen *s,
                       const struct kube_pod *pod, enum history_reason reason)
{
    cleanup_str struct str text = STR_INIT(4 * HISTORY_MESSAGE_MAX);
    add_text(&text, &pod->reason);
    add_text(&text, &pod->message);
    tell(c, s, reason, str_text(&text));
}

static struct seen *seen_get(struct history_cluster *c,
                             const struct kube_pod *pod)
{
    const struct demand *d = &pod->demand;
    struct seen *s = strmap_get(&c->pods, d->uid);
    if (!s) {
        s = xcalloc(1, sizeof *s);
        memcpy(s->uid, d->uid, sizeof s->uid);
        (void)snprintf(s->pod, sizeof s->pod, "%s/%s", d->namespace, d->name);
        (void)strmap_put(&c->pods, s->uid, s);
    }
    record_job_key(d, s->job);
    s->pair = *s->job ? d->pair : -1;
    memcpy(s->node, pod->node, sizeof s->node);
    return s;
}

static void on_put(void *ctx, const struct kube_pod *pod)
{
    struct history_cluster *c = ctx;
    struct seen *s = seen_get(c, pod);
    bool over = pod->phase == POD_SUCCEEDED || pod->phase == POD_FAILED;
    if (over && !s->over)
        tell_state(c, s, pod,
                   pod->phase == POD_FAILED ? HISTORY_FAILED : HISTORY_ENDED);
    else if (!over && pod->ready && !s->ready)
        tell(c, s, HISTORY_STARTED, "");
    else if (!over && !pod->ready && s->ready && !pod->deleting)
        tell_state(c, s, pod, HISTORY_STOPPED);
    s->over = over;
    s->ready = pod->ready && !over;
}

static void on_gone(void *ctx, const char *uid)
{
    struct history_cluster *c = ctx;
    struct seen *s = strmap_remove(&c->pods, uid);
    if (s && !s->over)
        tell(c, s, HISTORY_ENDED, "it was deleted");
    free(s);
}

static void on_listed(void *ctx)
{
    struct history_cluster *c = ctx;
    c->listed = true;
}

struct pod_listener history_cluster_listener(struct history_cluster *c)
{
    return (struct pod_listener){
        .put = on_put, .gone = on_gone, .listed = on_listed, .ctx = c};
}

void history_cluster_told(void *ctx, const struct events_pod *pod,
                          enum events_reason reason, const char *text)
{
    static const struct {
        enum events_reason told;
        enum history_reason reason;
    } reasons[] = {
        {EVENTS_REFUSED, HISTORY_REFUSED},
        {EVENTS_XPU_POD_FAILED, HISTORY_FAILED},
        {EVENTS_BUDDY_FAILED, HISTORY_FAILED},
        {EVENTS_CARD_LOST, HISTORY_LOST},
        {EVENTS_CARD_BACK, HISTORY_RECOVERED},
        {EVENTS_EVICTED, HISTORY_EVICTED},
        {EVENTS_DRAINED, HISTORY_EVICTED},
        {EVENTS_PREEMPTED, HISTORY_EVICTED},
        {EVENTS_OVERFULL, HISTORY_DEGRADED},
    };
    struct history_cluster *c = ctx;
    char object[HISTORY_OBJECT_MAX + 1];
    (void)snprintf(object, sizeof object, "%s/%s", pod->namespace, pod->name);
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
        if (reasons[i].told == reason)
            history_post(c->history,
                         &(struct history_event){.kind = HISTORY_POD,
                                                 .reason = reasons[i].reason,
                                                 .object = object,
                                                 .pair = -1,
                                                 .message = text});
}
