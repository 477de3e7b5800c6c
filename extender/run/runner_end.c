/* How lives end: what has finished or failed is written down as over, a job
 * of which a pod cannot start is, too, xPU pods end after their host pod, and
 * what was deleted and is gone is forgotten. */
#include <string.h>

#include "extender/pods/job_object.h"
#include "extender/run/runner_private.h"
#include "lib/base/mem.h"
#include "lib/io/log.h"

#define TORN_DOWN "JobTornDown"
#define JOB_FAILED_WORD "JobFailed"
#define XPU_FAILED "XpuPodFailed"
#define HOST_ENDED "HostPodEnded"

/* --- changes ------------------------------------------------------------ */

static struct pod_change *change_add(struct look *l, struct member *m,
                                     enum pod_change_kind kind)
{
    m->changing = true;
    l->changes = xgrow(l->changes, l->n_changes, &l->changes_cap,
                       sizeof *l->changes);
    struct pod_change *c = &l->changes[l->n_changes++];
    *c = (struct pod_change){.kind = kind,
                             .namespace = m->pod->namespace,
                             .name = m->pod->name,
                             .uid = m->pod->uid,
                             .grace_s = -1};
    return c;
}

static void end(struct look *l, struct member *m, enum pod_state ended,
                const char *reason, const char *message)
{
    struct pod_change *c = change_add(l, m, APPLIED_END);
    c->ended = ended;
    c->status = pod_status_create(0);
    c->status->state = ended;
    (void)snprintf(c->status->reason, sizeof c->status->reason, "%s", reason);
    (void)snprintf(c->status->message, sizeof c->status->message, "%s",
                   message);
    log_event(ended == POD_STATE_FAILED ? LOG_WARN : LOG_INFO, "pod-over",
              "namespace", m->pod->namespace, "pod", m->pod->name, "reason",
              reason, "message", message, NULL);
}

void look_post(struct look *l)
{
    if (l->n_changes > 0)
        look_flush(l); /* what is posted counts more */
    for (size_t i = 0; i < l->n_changes && !l->failed;
         i += APPLIED_CHANGES_MAX) {
        size_t n = l->n_changes - i;
        struct writer_op op = {
            .kind = WRITER_PODS,
            .changes = l->changes + i,
            .n_changes = n < APPLIED_CHANGES_MAX ? n : APPLIED_CHANGES_MAX,
            .out = STR_INIT(STR_MAX_DEFAULT)};
        int r = writer_run(l->r->store->writer, &op);
        str_fini(&op.out);
        l->acted = true; /* -ENOENT: it has changed already */
        l->failed = r < 0 && r != -ENOENT;
        if (l->failed)
            log_event(LOG_ERROR, "runner-store", "error", op.error.text, NULL);
    }
    for (size_t i = 0; i < l->n_changes; i++)
        pod_status_unref(l->changes[i].status);
    l->n_changes = 0;
}

/* --- what has finished -------------------------------------------------- */

/* It failed before it was up, as far as is known. */
static bool could_not_start(const struct member *m)
{
    const struct pod_status *s = m->pod->status;
    if (m->told.was_ready || s->ran != APPLIED_RAN_UNKNOWN)
        return !m->told.was_ready && s->ran == APPLIED_RAN_NEVER;
    /* an older node does not say; what was lost, or has exited, ran */
    return strcmp(s->reason, "SandboxLost") != 0 &&
           (m->told.was_other || !pod_status_has_exited(s, false));
}

static bool is_news_failed(const struct member *m)
{
    /* a card that its node has not found yet may come */
    if (strcmp(m->pod->status->reason, "NoSuchCard") == 0)
        return false;
    return m->place && !member_is_over(m) &&
           m->told.state == POD_STATE_FAILED &&
           m->pod->status->state == POD_STATE_FAILED;
}

/* It ended for another pod's sake. */
static bool is_torn_down(const struct member *m)
{
    return m->pod->end && (strcmp(m->pod->end->reason, TORN_DOWN) == 0 ||
                           strcmp(m->pod->end->reason, JOB_FAILED_WORD) == 0);
}

/* Of a Job of Kubernetes, which fails with the first of its pods. */
static bool is_of_job_object(const struct member *m)
{
    return m->pod->demand.role == ROLE_HOST && job_object_made(m->pod->json);
}

static void end_rest(struct look *l, const struct group *g, const char *reason,
                     const char *message)
{
    for (size_t i = 0; i < g->n; i++)
        if (!member_is_over(&g->members[i]) && !g->members[i].changing)
            end(l, &g->members[i], POD_STATE_FAILED, reason, message);
}

static void fail_job(struct look *l, const struct group *g,
                     const struct member *cause)
{
    const struct pod_status *s = cause->pod->status;
    char text[APPLIED_MESSAGE_MAX + 1];
    (void)snprintf(text, sizeof text,
                   "pod %s of the job has failed: %s%s%.300s; its Job makes no "
                   "pod anew",
                   cause->pod->name, *s->reason ? s->reason : "Failed",
                   *s->message ? ": " : "", s->message);
    end_rest(l, g, JOB_FAILED_WORD, text);
}

void look_tear_down(struct look *l, const struct group *g,
                    const struct member *cause, const char *why)
{
    char text[APPLIED_MESSAGE_MAX + 1];
    (void)snprintf(text, sizeof text,
                   "pair %d of the job could not start: pod %s/%s%s%s: %.300s; "
                   "once that is set right, delete the pods of the job and "
                   "apply them again",
                   (int)cause->pod->demand.pair, cause->pod->namespace,
                   cause->pod->name, cause->place ? " on node " : "",
                   cause->place ? cause->place->node : "", why);
    end_rest(l, g, TORN_DOWN, text);
}

/* The rest of a job whose end was cut short. */
static void finish_tearing(struct look *l, const struct group *g)
{
    const struct pod_status *torn = NULL;
    for (size_t i = 0; i < g->n && !torn; i++)
        if (is_torn_down(&g->members[i]))
            torn = g->members[i].pod->end;
    for (size_t i = 0; i < g->n && torn; i++)
        if (g->members[i].place && !member_is_over(&g->members[i]))
            end(l, &g->members[i], POD_STATE_FAILED, torn->reason,
                torn->message);
}

static void end_finished(struct look *l, const struct group *g)
{
    const struct member *cause = NULL, *failed = NULL;
    for (size_t i = 0; i < g->n; i++) {
        struct member *m = &g->members[i];
        const struct pod_status *s = m->pod->status;
        if (!is_news_failed(m))
            continue;
        bool well = pod_status_has_succeeded(s);
        end(l, m, well ? POD_STATE_GONE : POD_STATE_FAILED,
            *s->reason ? s->reason
            : well     ? "Completed"
                       : "Failed",
            s->message);
        if (!well && !cause && could_not_start(m))
            cause = m;
        if (!well && !failed && is_of_job_object(m))
            failed = m;
    }
    if (g->size > 1 && cause) {
        char why[APPLIED_MESSAGE_MAX + APPLIED_REASON_MAX + 4];
        const struct pod_status *s = cause->pod->status;
        (void)snprintf(why, sizeof why, "%s%s%s",
                       *s->reason ? s->reason : "it failed",
                       *s->message ? ": " : "", s->message);
        look_tear_down(l, g, cause, why);
    } else if (failed) {
        fail_job(l, g, failed);
    } else {
        finish_tearing(l, g);
    }
}

/* --- pairs -------------------------------------------------------------- */

/* What of a pair's host pods is left. */
struct hosts {
    size_t n;
    bool alive, deleting;
};

static struct hosts count_hosts(const struct group *pair)
{
    struct hosts h = {0};
    for (size_t i = 0; i < pair->n; i++) {
        const struct member *m = &pair->members[i];
        if (m->pod->demand.role != ROLE_HOST)
            continue;
        h.n++;
        h.alive |= m->place || !member_is_over(m);
        h.deleting |= m->pod->deleting;
    }
    return h;
}

static void end_after_host(struct look *l, const struct group *pair)
{
    struct hosts h = count_hosts(pair);
    for (size_t i = 0; i < pair->n && h.n > 0 && !h.alive; i++) {
        struct member *m = &pair->members[i];
        if (m->pod->demand.role != ROLE_XPU || m->pod->deleting)
            continue;
        if (h.deleting)
            (void)change_add(l, m, APPLIED_DELETE);
        else if (!member_is_over(m) && !m->changing)
            end(l, m, POD_STATE_GONE, HOST_ENDED,
                "its host pod is over, so it was ended; delete it when it is "
                "not needed any more");
    }
}

/* What its node may say of a host pod beside that: nothing, or this. */
static bool is_idle_reason(const char *reason)
{
    return !*reason || strcmp(reason, "WaitsForPair") == 0;
}

static struct pod_status *copy_status(const struct pod_status *from)
{
    struct pod_status *s = pod_status_create(from->n_containers);
    s->state = from->state;
    s->ready = from->ready;
    s->ran = from->ran;
    s->attempt = from->attempt;
    memcpy(s->reason, from->reason, sizeof s->reason);
    memcpy(s->message, from->message, sizeof s->message);
    memcpy(s->address, from->address, sizeof s->address);
    for (size_t i = 0; i < s->n_containers; i++)
        s->containers[i] = from->containers[i];
    return s;
}

/* As its node has told it, without what we have added. */
static struct pod_status *status_without(struct look *l,
                                         const struct member *host)
{
    struct pod_status *s = host->place
                               ? node_reports_status(l->r->store->reports,
                                                     host->pod->uid,
                                                     host->place->node)
                               : NULL;
    if (s)
        return s;
    s = copy_status(host->pod->status);
    s->reason[0] = s->message[0] = '\0';
    return s;
}

/* The host pod says that its xPU pod has failed, as long as its node says
 * nothing else of it. */
static void tell_host(struct look *l, const struct member *host,
                      const struct member *failed)
{
    const struct pod_status *now = host->pod->status;
    bool told = strcmp(now->reason, XPU_FAILED) == 0;
    if (member_is_over(host) || !host->place ||
        (!is_idle_reason(now->reason) && !told) || (!failed && !told))
        return;
    cleanup_with(pod_status) struct pod_status *base = status_without(l, host);
    if (!is_idle_reason(base->reason))
        return; /* its node has said something else since this look began */
    cleanup_with(pod_status) struct pod_status *s = copy_status(base);
    if (failed) {
        const struct pod_status *f = failed->pod->end;
        (void)snprintf(s->reason, sizeof s->reason, "%s", XPU_FAILED);
        (void)snprintf(s->message, sizeof s->message,
                       "xPU pod %s has failed: %s%s%.300s; once that is set "
                       "right, delete that pod and apply it again",
                       failed->pod->name, f->reason, *f->message ? ": " : "",
                       f->message);
    }
    if (!pod_status_equal(s, now))
        (void)applied_set_status(l->r->store->applied, host->pod->uid,
                                 s); /* or gone */
    /* what its node has said meanwhile must not be lost under ours */
    cleanup_with(pod_status) struct pod_status *after = node_reports_status(
        l->r->store->reports, host->pod->uid, host->place->node);
    if (after && after->state != s->state)
        (void)applied_set_status(l->r->store->applied, host->pod->uid, after);
}

static void tell_hosts(struct look *l, const struct group *pair)
{
    const struct member *failed = NULL;
    for (size_t i = 0; i < pair->n && !failed; i++)
        if (pair->members[i].pod->demand.role == ROLE_XPU &&
            pair->members[i].pod->ended == POD_STATE_FAILED &&
            !is_torn_down(&pair->members[i]))
            failed = &pair->members[i];
    for (size_t i = 0; i < pair->n; i++)
        if (pair->members[i].pod->demand.role == ROLE_HOST)
            tell_host(l, &pair->members[i], failed);
}

static void each_pair(struct look *l, const struct group *g,
                      void (*visit)(struct look *l, const struct group *pair))
{
    size_t end;
    for (size_t i = 0; i < g->n; i = end) {
        for (end = i + 1; end < g->n && g->members[end].pod->demand.pair ==
                                            g->members[i].pod->demand.pair;
             end++)
            ;
        const struct group pair = {g->members + i, end - i, g->size};
        visit(l, &pair);
    }
}

/* --- all of it ---------------------------------------------------------- */

static void forget(struct look *l, const struct group *g)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->members[i].pod->deleting && !g->members[i].place)
            (void)change_add(l, &g->members[i], APPLIED_FORGET);
}

void fault_text(const struct applied_pod *pod,
                char ret_text[APPLIED_MESSAGE_MAX + 1])
{
    (void)snprintf(ret_text, APPLIED_MESSAGE_MAX + 1,
                   "a newer extender has stored this pod, and this one does "
                   "not understand it (%.300s): where it runs it goes on; "
                   "start the newer one again, or delete the pod",
                   pod->fault);
}

/* It has a place, and its node has not said anything yet. */
static void tell_wanted(struct look *l, const struct member *m)
{
    const struct pod_store *store = l->r->store;
    char text[APPLIED_MESSAGE_MAX + 1] = "";
    if (!m->place || m->told.state != POD_STATE_PENDING || member_is_over(m) ||
        m->pod->status->state != POD_STATE_PENDING)
        return;
    if (m->pod->fault)
        fault_text(m->pod, text);
    look_tell(l, m, POD_STATE_WANTED, m->pod->fault ? NOT_UNDERSTOOD : "",
              text);
    look_flush(l);
    /* the node may have spoken while we did */
    struct pod_status *told = node_reports_status(store->reports, m->pod->uid,
                                                  m->place->node);
    if (told) {
        struct pod_status *whole = runner_status(m->pod, told);
        (void)applied_set_status(store->applied, m->pod->uid,
                                 whole); /* or gone */
        pod_status_unref(whole);
    }
    pod_status_unref(told);
}

void look_end(struct look *l, const struct group *g)
{
    end_finished(l, g);
    if (member_has_job(&g->members[0])) {
        each_pair(l, g, end_after_host);
        each_pair(l, g, tell_hosts);
    }
    forget(l, g);
    for (size_t i = 0; i < g->n; i++)
        tell_wanted(l, &g->members[i]);
    look_post(l);
}

struct pod_status *runner_status(const struct applied_pod *pod,
                                 struct pod_status *told)
{
    const struct pod_status *now = pod->status;
    bool sticky = strcmp(now->reason, XPU_FAILED) == 0 &&
                  is_idle_reason(told->reason);
    bool foreign = pod->fault && is_idle_reason(told->reason) &&
                   told->state != POD_STATE_FAILED &&
                   told->state != POD_STATE_GONE;
    if (!sticky && !foreign && pod->ended == POD_STATE_PENDING)
        return pod_status_ref(told);
    struct pod_status *s = copy_status(told);
    if (!sticky && pod->ended == POD_STATE_PENDING) {
        (void)snprintf(s->reason, sizeof s->reason, "%s", NOT_UNDERSTOOD);
        fault_text(pod, s->message);
        return s;
    }
    memcpy(s->reason, now->reason, sizeof s->reason);
    memcpy(s->message, now->message, sizeof s->message);
    return s;
}
