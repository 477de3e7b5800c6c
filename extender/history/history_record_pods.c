/* Pods that were applied: how they fare. */
#include <string.h>

#include "extender/history/history_record_private.h"

static void tell(struct record *r, const struct applied_pod *p,
                 enum history_reason reason, const char *text)
{
    char pod[HISTORY_OBJECT_MAX + 1], job[HISTORY_OBJECT_MAX + 1];
    (void)snprintf(pod, sizeof pod, "%s/%s", p->namespace, p->name);
    record_job_key(&p->demand, job);
    record_event(
        r, &(struct history_event){.kind = HISTORY_POD,
                                   .reason = reason,
                                   .object = pod,
                                   .node = history_book_where(r->book, pod),
                                   .job = job,
                                   .pair = *job ? p->demand.pair : -1,
                                   .message = text});
}

/* "Reason: message", or what there is of it. */
static void tell_status(struct record *r, const struct applied_pod *p,
                        enum history_reason reason, const struct pod_status *s)
{
    char text[APPLIED_REASON_MAX + APPLIED_MESSAGE_MAX + 3];
    (void)snprintf(text, sizeof text, "%s%s%s", s->reason,
                   s->reason[0] && s->message[0] ? ": " : "", s->message);
    tell(r, p, reason, text);
}

static void compare_ends(struct record *r, const struct applied_pod *was,
                         const struct applied_pod *is)
{
    bool over = was && was->ended != POD_STATE_PENDING;
    if (!over && is->ended != POD_STATE_PENDING)
        tell_status(r, is,
                    is->ended == POD_STATE_FAILED ? HISTORY_FAILED
                                                  : HISTORY_ENDED,
                    is->end ? is->end : is->status);
}

static bool is_lost(const struct pod_status *s)
{
    return s && !s->ready && strcmp(s->reason, "CardLost") == 0;
}

static int find_last(struct history_book *b, const char *pod,
                     enum history_reason *ret_last, struct error *err)
{
    static const enum history_reason of_life[] = {
        HISTORY_BOUND,     HISTORY_STARTED, HISTORY_STOPPED, HISTORY_LOST,
        HISTORY_RECOVERED, HISTORY_ENDED,   HISTORY_FAILED,  HISTORY_RELEASED};
    uint32_t reasons = 0;
    for (size_t i = 0; i < ARRAY_LEN(of_life); i++)
        reasons |= UINT32_C(1) << of_life[i];
    *ret_last = HISTORY_REASONS;
    return history_book_last(b, HISTORY_POD, pod, reasons, ret_last, err);
}

int history_record_again(struct history_book *b, const struct history_event *e,
                         struct error *err)
{
    enum history_reason last;
    int r = find_last(b, e->object, &last, err);
    bool waits = last == HISTORY_BOUND || last == HISTORY_STOPPED;
    bool runs = last == HISTORY_STARTED || last == HISTORY_RECOVERED ||
                last == HISTORY_LOST;
    bool follows = waits || (runs && e->reason != HISTORY_STARTED);
    return r == 0 && follows ? history_book_event(b, e, err) : r;
}

/* After a start nodes say again of each pod that it is ready, or lost. */
static enum history_reason find_last_of(struct record *r,
                                        const struct applied_pod *p)
{
    char pod[HISTORY_OBJECT_MAX + 1];
    enum history_reason last = HISTORY_REASONS;
    (void)snprintf(pod, sizeof pod, "%s/%s", p->namespace, p->name);
    if (r->result == 0)
        r->result = find_last(r->book, pod, &last, r->err);
    return last;
}

static void tell_ready(struct record *r, const struct applied_pod *p)
{
    enum history_reason last = find_last_of(r, p);
    if (last == HISTORY_LOST)
        tell(r, p, HISTORY_RECOVERED, "its card is back");
    else if (last != HISTORY_STARTED && last != HISTORY_RECOVERED)
        tell_status(r, p, HISTORY_STARTED, p->status);
}

static void tell_lost(struct record *r, const struct applied_pod *p)
{
    if (find_last_of(r, p) != HISTORY_LOST)
        tell_status(r, p, HISTORY_LOST, p->status);
}

static void compare_statuses(struct record *r, const struct applied_pod *was,
                             const struct applied_pod *is)
{
    const struct pod_status *old = was ? was->status : NULL;
    const struct pod_status *now = is->status;
    if (old == now || (old && pod_status_equal(old, now)))
        return;
    if (now->state == POD_STATE_PENDING && now->reason[0])
        tell_status(r, is, HISTORY_REFUSED, now);
    else if (now->ready && !(old && old->ready))
        tell_ready(r, is);
    else if (is_lost(now) && !is_lost(old) && is->ended == POD_STATE_PENDING)
        tell_lost(r, is);
    else if (!now->ready && old && old->ready && !is->deleting &&
             is->ended == POD_STATE_PENDING)
        tell_status(r, is, HISTORY_STOPPED, now);
}

static void compare(struct record *r, const struct applied_pod *was,
                    const struct applied_pod *is)
{
    if (was && is && strcmp(was->uid, is->uid) != 0) {
        compare(r, was, NULL);
        was = NULL;
    }
    if (is) {
        compare_statuses(r, was, is);
        compare_ends(r, was, is);
    } else if (was && was->ended == POD_STATE_PENDING) {
        tell(r, was, HISTORY_ENDED, "it was deleted");
    }
}

static int compare_names(const struct applied_pod *a,
                         const struct applied_pod *b)
{
    int order = strcmp(a->namespace, b->namespace);
    return order ? order : strcmp(a->name, b->name);
}

int history_record_pods(struct history_book *b, const struct pod_set *before,
                        const struct pod_set *after, int64_t ms,
                        struct error *err)
{
    struct record r = {.book = b, .ms = ms, .err = err};
    for (size_t i = 0, k = 0; i < before->n_pods || k < after->n_pods;) {
        const struct applied_pod *was = i < before->n_pods ? before->pods[i]
                                                           : NULL;
        const struct applied_pod *is = k < after->n_pods ? after->pods[k]
                                                         : NULL;
        int order = !was ? 1 : !is ? -1 : compare_names(was, is);
        if (was != is)
            compare(&r, order <= 0 ? was : NULL, order >= 0 ? is : NULL);
        i += order <= 0;
        k += order >= 0;
    }
    return r.result;
}
