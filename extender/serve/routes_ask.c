#include "extender/serve/routes_ask.h"

#include <stdio.h>
#include <string.h>

#include "extender/achieved/achieved.h"
#include "extender/judge/alignment.h"
#include "extender/judge/runners_up.h"
#include "extender/judge/why.h"
#include "extender/pods/pending_demands.h"
#include "extender/serve/app.h"
#include "extender/serve/pending.h"
#include "extender/serve/query.h"
#include "extender/serve/routes_private.h"
#include "extender/serve/unknown_keys.h"
#include "extender/state/overcommit.h"
#include "extender/view/views.h"
#include "lib/base/jwrite.h"
#include "lib/base/mem.h"

/* --- why ---------------------------------------------------------------- */

/* What has become of its place since. */
static void why_place(const struct snapshot *s, const struct allocation *a,
                      struct str *text)
{
    cleanup_str struct str more = STR_INIT(STR_MAX_DEFAULT);
    int32_t index = snapshot_find(s, a->node, strlen(a->node));
    if (index == NODE_NONE) {
        str_add(text, "; the node's topology has been withdrawn since");
        return;
    }
    const struct node *node = snapshot_node(s, (size_t)index);
    if (node->status != NODE_READY)
        str_addf(text, "; the node is %s now", node_status_name(node->status));
    if (overcommit_find(node, s->policy, a, &more) != OVERCOMMIT_NOT)
        str_addf(text, "; overfull: %s", str_text(&more));
}

/* What it has of that. */
static void why_achieved(const struct app *app, const struct snapshot *s,
                         const struct allocation *a, struct str *text)
{
    cleanup_with(achieved_report) struct achieved_report *report =
        achieved_book_get(app->achieved, a->node);
    cleanup_str struct str why = STR_INIT(65536);
    struct achieved x;
    if (a->held || !report)
        return;
    achieved_judge(s, a, report, &x, &why);
    str_addf(text, "; achieved: %s",
             achieved_counts(a) ? achieved_word(&x)
                                : achieved_state_name(x.state));
    if (why.size)
        str_addf(text, "%s: %s", x.state == ACHIEVED_LOST ? ", lost" : "",
                 str_text(&why));
}

static void why_allocated(struct httpd_request *rq, const struct app *app,
                          struct snapshot *snapshot, const struct allocation *a)
{
    struct str *out = httpd_reply(rq);
    cleanup_str struct str text = STR_INIT(8192);
    struct runners_up runners = {.decided_by = ""};
    if (!a->held)
        runners_up_find(snapshot, a, &runners);
    str_addf(&text, "on node %s, card", a->node);
    for (unsigned i = 0; i < a->n_cards; i++)
        str_addf(&text, " %s", a->cards[i]);
    alignment_explain(snapshot, a, &text);
    why_place(snapshot, a, &text);
    why_achieved(app, snapshot, a, &text);
    pod_source_tell(&app->source, add_health, a, &text);
    if (httpd_wants_text(rq)) {
        httpd_content_type(rq, HTTPD_TEXT);
        unknown_keys_write_line(app, &a->demand, out);
        str_addf(out, "pod %s/%s is allocated %s\n", a->demand.namespace,
                 a->demand.name, str_text(&text));
        runners_up_tell(&runners, out);
        return;
    }
    unknown_keys_write_pod(app, &a->demand, out);
    jwrite_text(out, "state", "allocated");
    jwrite_text(out, "summary", str_text(&text));
    jwrite_key(out, "allocation");
    view_allocation(snapshot, app->achieved, a, out);
    runners_up_write(&runners, out);
    jwrite_end_object(out);
}

static void why_text(const struct app *app, const struct why *why,
                     struct str *out)
{
    const struct schedule *s = &why->schedule;
    str_addf(out, "pod %s/%s is pending: ", s->demand->namespace,
             s->demand->name);
    pending_summary(app, why, out);
    str_add(out, why->plan ? "\n" : "\n\nNODES  REASON\n");
    for (enum reason r = REASON_NONE + 1; r < REASON_COUNT; r++) {
        if (!why->count[r])
            continue;
        str_addf(out, "%5zu  ", why->count[r]);
        schedule_brief(s, r, out);
        str_add(out, "\n       e.g. ");
        str_add(out, snapshot_node(s->snapshot, (size_t)why->example[r])->name);
        str_add(out, ": ");
        schedule_explain(s, why->example[r], r, out);
        str_add_c(out, '\n');
    }
    if (why->advice.n_changes)
        str_add(out, "\nIT WOULD FIT WITH ONE OF\n");
    for (size_t i = 0; i < why->advice.n_changes; i++) {
        str_add(out, "  ");
        change_text(s, &why->advice.changes[i], out);
        str_add_c(out, '\n');
    }
}

/* `note` is what its source says beside it, or "". */
static void why_pending(struct httpd_request *rq, void *ctx,
                        const struct snapshot *snapshot,
                        const struct demand *demand, const char *note)
{
    struct str *out = httpd_reply(rq);
    struct app *app = ctx;
    size_t n = 0;
    cleanup_with(candidates) struct candidates *names =
        pending_demands_candidates(app->demands, demand->uid);
    cleanup_free int32_t *indexes = candidates_indexes(names, snapshot, &n);
    cleanup_why struct why why;
    struct why_names last = {indexes, n};
    why_init(&why, snapshot, demand, app->plans, &last);
    why_advise(&why);
    if (httpd_wants_text(rq)) {
        httpd_content_type(rq, HTTPD_TEXT);
        unknown_keys_write_line(app, demand, out);
        if (*note)
            str_addf(out, "note: %s\n", note);
        why_text(app, &why, out);
        return;
    }
    cleanup_str struct str text = STR_INIT(65536);
    pending_summary(app, &why, &text);
    unknown_keys_write_pod(app, demand, out);
    jwrite_text(out, "state", "pending");
    jwrite_text(out, "summary", str_text(&text));
    jwrite_known_text(out, "note", note);
    int64_t lease_s = pending_lease_s(app, &why);
    if (lease_s >= 0)
        jwrite_int(out, "leaseEndsInSeconds", lease_s);
    why_write(&why, out);
    jwrite_end_object(out);
}

/* Of a pod about which nothing is judged: `state` and why. */
static void why_short(struct httpd_request *rq, const struct app *app,
                      const struct demand *demand, const char *state,
                      const char *text)
{
    struct str *out = httpd_reply(rq);
    if (httpd_wants_text(rq)) {
        httpd_content_type(rq, HTTPD_TEXT);
        unknown_keys_write_line(app, demand, out);
        str_addf(out, "pod %s/%s is %s: %s\n", demand->namespace, demand->name,
                 state, text);
        return;
    }
    unknown_keys_write_pod(app, demand, out);
    jwrite_text(out, "state", state);
    jwrite_text(out, "summary", text);
    jwrite_end_object(out);
}

/* "NS/NAME", or "NAME" in the namespace "default". */
static bool split_pod(const char *pod, char *namespace, size_t cap,
                      const char **ret_name)
{
    const char *slash = strchr(pod, '/');
    size_t len = slash ? (size_t)(slash - pod) : strlen("default");
    if (len == 0 || len >= cap || strlen(pod) > DEMAND_NAME_MAX + cap)
        return false;
    memcpy(namespace, slash ? pod : "default", len);
    namespace[len] = '\0';
    *ret_name = slash ? slash + 1 : pod;
    return **ret_name && !strchr(*ret_name, '/');
}

static bool is_allocated(const void *ctx, const struct demand *demand)
{
    const struct snapshot *snapshot = ctx;
    return alloc_index_find(snapshot->allocations, demand->namespace,
                            demand->name) != NULL;
}

/* A place that is only held has no pod to speak of. */
static size_t first_bound(const struct allocation *const *members, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!members[i]->held)
            return i;
    return 0;
}

/* By what the source of pods says. */
static void why_account(struct httpd_request *rq, struct app *app,
                        struct snapshot *snapshot,
                        const struct pod_account *account)
{
    if (account->place)
        why_allocated(rq, app, snapshot, account->place);
    else if (account->state)
        why_short(rq, app, &account->demand, account->state,
                  str_text(&account->text));
    else
        why_pending(rq, app, snapshot, &account->demand,
                    str_text(&account->text));
}

/* By a pod of the job that has no place yet, if one is known. */
static bool why_job(struct httpd_request *rq, struct app *app,
                    struct snapshot *snapshot, const char *namespace,
                    const char *job)
{
    struct demand demand;
    size_t n;
    cleanup_free const struct allocation **members =
        alloc_index_find_job(snapshot->allocations, namespace, job, &n);
    struct pod_account account = {.text = STR_INIT(4096)};
    bool told = pod_source_ask(&app->source, find_job, snapshot, namespace, job,
                               &account);
    if (told)
        why_account(rq, app, snapshot, &account);
    str_fini(&account.text);
    if (told)
        return true;
    bool seen = pending_demands_find_job(app->demands, namespace, job,
                                         is_allocated, snapshot, &demand);
    if (seen && !is_allocated(snapshot, &demand) && demand.role != ROLE_NONE)
        why_pending(rq, app, snapshot, &demand, "");
    else if (n > 0)
        why_allocated(rq, app, snapshot, members[first_bound(members, n)]);
    else
        return false;
    return true;
}

static bool why_source(struct httpd_request *rq, struct app *app,
                       struct snapshot *snapshot, const char *namespace,
                       const char *name)
{
    struct pod_account account = {.text = STR_INIT(4096)};
    bool found = pod_source_ask(&app->source, find, snapshot, namespace, name,
                                &account);
    if (found)
        why_account(rq, app, snapshot, &account);
    str_fini(&account.text);
    return found;
}

static void why_pod(struct httpd_request *rq, struct app *app,
                    struct snapshot *snapshot, const char *namespace,
                    const char *name)
{
    struct demand demand;
    cleanup_free char *refusal = NULL;
    const struct allocation *a = alloc_index_find(snapshot->allocations,
                                                  namespace, name);
    bool seen = !a && pending_demands_find_name(app->demands, namespace, name,
                                                &demand, &refusal);
    if (a)
        why_allocated(rq, app, snapshot, a);
    else if (why_source(rq, app, snapshot, namespace, name))
        return;
    else if (!seen && why_job(rq, app, snapshot, namespace, name))
        return;
    else if (!seen)
        httpd_fail(rq, 404,
                   "pod %s/%s is not known: no scheduler has asked about it "
                   "since this extender started (is the namespace right, and "
                   "its container requesting a resource of "
                   "managedResources?)",
                   namespace, name);
    else if (refusal)
        why_short(rq, app, &demand, "refused", refusal);
    else if (demand.role == ROLE_NONE)
        httpd_fail(rq, 404,
                   "pod %s/%s has no label biga.dev/role: it is not placed by "
                   "Biga",
                   namespace, name);
    else
        why_pending(rq, app, snapshot, &demand, "");
}

static void handle_why(struct httpd_request *rq, void *ctx)
{
    static const char *const params[] = {"job", "pod", NULL};
    struct app *app = ctx;
    char namespace[DEMAND_NAMESPACE_MAX + 1];
    const char *name;
    const char *job = httpd_query(rq, "job"), *pod = httpd_query(rq, "pod");
    const char *key = job ? job : pod;
    if (!httpd_query_only(rq, params))
        return;
    if (!key || (job && pod) ||
        !split_pod(key, namespace, sizeof namespace, &name)) {
        httpd_fail(rq, 400,
                   "query parameter %s: is \"%.64s\", must be "
                   "NAMESPACE/NAME%s",
                   job ? "job" : "pod", key ? key : "",
                   job && pod ? ", and pod is not asked at the same time" : "");
        return;
    }
    cleanup_with(snapshot) struct snapshot *snapshot = visible_snapshot(app,
                                                                        rq);
    if (!job)
        why_pod(rq, app, snapshot, namespace, name);
    else if (!why_job(rq, app, snapshot, namespace, name))
        httpd_fail(rq, 404,
                   "job %s/%s is not known: no pod of it is bound, and no "
                   "scheduler has asked about one since this extender started",
                   namespace, name);
}

const struct httpd_route ask_routes[] = {
    {HTTPD_GET, "/v1/why", handle_why, 0, "why"},
    {HTTPD_POST, "/v1/simulate", handle_simulate, SIMULATE_BODY_MAX,
     "simulate"},
};
const size_t n_ask_routes = ARRAY_LEN(ask_routes);
