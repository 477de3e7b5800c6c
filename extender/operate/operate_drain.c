#include "extender/operate/operate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "extender/history/history.h"
#include "extender/pods/applied_set.h"
#include "extender/run/embedded.h"
#include "extender/serve/query.h"
#include "extender/serve/waiting.h"
#include "lib/base/json.h"
#include "lib/base/jwrite.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"

static const char *const no_params[] = {NULL};

/* One that waits to be durable; then, embedded, for the end of its pods. */
struct drain {
    struct waiting waiting; /* first */
    struct pod_drain there; /* in a cluster */
    struct card_bars *bars; /* the one */
    struct snapshot *snapshot;
    const char *node; /* of the snapshot */
    struct pod_change *changes;
    bool evicts; /* it is drained, and its pods are told to end */
};

static struct card_bar *bar_of(const struct drain *d)
{
    return &d->bars->items[0];
}

static void drain_free(struct drain *d)
{
    card_bars_unref(d->bars);
    snapshot_unref(d->snapshot);
    free(d->changes);
    free(d);
}

static void drain_destroy(struct waiting *w)
{
    drain_free((struct drain *)w);
}

/* --- what is asked -------------------------------------------------------- */

/* By its id, or by where it is: "card-0000-17-00", "0000:17:00.0". */
static const char *find_card(const struct node *node, const char *name)
{
    struct pci_addr addr;
    struct error ignored;
    char id[TOPO_ID_MAX + 1];
    size_t first,
        n = node->topo ? topo_count(node->topo, DEVICE_CARD, &first) : 0;
    if (pci_addr_parse(name, &addr, &ignored) == 0) {
        device_id_format(DEVICE_CARD, &addr, id);
        name = id;
    }
    for (size_t i = 0; i < n; i++)
        if (strcmp(topo_device(node->topo, first + i)->id, name) == 0)
            return topo_device(node->topo, first + i)->id;
    return NULL;
}

/* The node, and the card if the path names one; false when the request has been
 * failed.  What is drained may have gone since: then its id is to be given. */
static bool find_target(struct httpd_request *rq, struct drain *d, bool gone)
{
    const char *name = httpd_arg(rq, 0), *card = httpd_arg(rq, 1);
    int32_t i = snapshot_find(d->snapshot, name, strlen(name));
    const struct node *node = i == NODE_NONE
                                  ? NULL
                                  : snapshot_node(d->snapshot, (size_t)i);
    const char *id = node && *card ? find_card(node, card) : NULL;
    d->node = node ? node->name : name;
    if (!*card && strncmp(httpd_path(rq), "/v1/nodes/", 10) != 0) {
        httpd_fail(rq, 404, "the path names no card");
        return false;
    }
    if (!node && !gone) {
        httpd_fail(rq, 404, "node \"%.253s\" has not published a slice", name);
        return false;
    }
    if (*card && !id && !gone) {
        httpd_fail(rq, 404,
                   "node \"%.253s\" has no card \"%.63s\": see /v1/cards?node="
                   "%.253s (biga cards)",
                   name, card, name);
        return false;
    }
    (void)snprintf(bar_of(d)->card, sizeof bar_of(d)->card, "%s",
                   id ? id : card);
    return true;
}

/* {"reason","evict","by"}; whom the listener knows is who it is. */
static int read_body(struct httpd_request *rq, struct card_bar *bar,
                     struct error *err)
{
    cleanup_with(json) cJSON *json = NULL;
    struct reader r;
    size_t size;
    const char *body = httpd_body(rq, &size);
    int e = json_parse(body, size, &json, err);
    if (e < 0)
        return e;
    reader_init(&r, json, "", err);
    const char *reason = reader_string(&r, "reason", DRAIN_BODY_MAX);
    const char *by = reader_opt_string(&r, "by", DRAIN_BODY_MAX);
    bar->evict = reader_opt_bool(&r, "evict", false);
    e = reader_finish_strict(&r);
    if (*httpd_user(rq) || !by)
        by = httpd_user(rq);
    if (e == 0)
        e = card_drain_check(reason, by, err);
    if (e < 0)
        return e;
    (void)snprintf(bar->reason, sizeof bar->reason, "%s", reason);
    (void)snprintf(bar->by, sizeof bar->by, "%s", by);
    return 0;
}

/* --- its pods ------------------------------------------------------------- */

static bool is_there(const struct drain *d, const struct allocation *a)
{
    bool found = !bar_of(d)->card[0];
    for (size_t i = 0; i < a->n_cards && !found; i++)
        found = strcmp(a->cards[i], bar_of(d)->card) == 0;
    return found && !a->held;
}

/* Those that are on it now; the caller frees the array. */
static const struct allocation **find_pods(const struct drain *d, size_t *ret_n)
{
    size_t n, kept = 0;
    const struct allocation **all =
        alloc_index_on_node(d->snapshot->allocations, d->node, &n);
    for (size_t i = 0; i < n; i++)
        if (is_there(d, all[i]))
            all[kept++] = all[i];
    *ret_n = kept;
    return all;
}

static void write_pods(const struct drain *d, struct str *out)
{
    size_t n;
    cleanup_free const struct allocation **pods = find_pods(d, &n);
    jwrite_array(out, "pods");
    for (size_t i = 0; i < n; i++) {
        jwrite_object(out, NULL);
        jwrite_text(out, "namespace", pods[i]->demand.namespace);
        jwrite_text(out, "name", pods[i]->demand.name);
        jwrite_end_object(out);
    }
    jwrite_end_array(out);
}

/* --- the answer ----------------------------------------------------------- */

static void reply(struct httpd_request *rq, const struct drain *d, bool gone)
{
    const struct card_bar *bar = bar_of(d);
    struct str *out = httpd_reply(rq);
    jwrite_object(out, NULL);
    jwrite_object(out, gone ? "undrained" : "drained");
    jwrite_text(out, "node", d->node);
    jwrite_known_text(out, "card", bar->card);
    jwrite_known_text(out, "reason", bar->reason);
    jwrite_known_text(out, "since", bar->since);
    jwrite_known_text(out, "by", bar->by);
    if (!gone)
        jwrite_bool(out, "evict", bar->evict);
    jwrite_end_object(out);
    write_pods(d, out);
    str_add(out, "}\n");
}

/* As a cluster's Events say it, once of each pod. */
static void note_evicted(const struct drain *d)
{
    char text[HISTORY_MESSAGE_MAX];
    (void)snprintf(text, sizeof text, "evicted from %s: %s", d->node,
                   bar_of(d)->why);
    for (size_t i = 0; i < d->waiting.op.n_changes; i++) {
        const struct pod_change *c = &d->changes[i];
        if (c->result == APPLIED_UNCHANGED)
            continue; /* it was ending before */
        history_post_placed(
            d->waiting.app->history,
            alloc_index_find(d->snapshot->allocations, c->namespace, c->name),
            HISTORY_EVICTED, text);
    }
}

/* What is there now, with all that was placed before the drain. */
static void look_anew(struct drain *d)
{
    snapshot_unref(d->snapshot);
    d->snapshot = writer_snapshot(d->waiting.app->writer);
    d->node = httpd_arg(d->waiting.rq, 0);
}

/* As biga delete does with each of them; false: there is none. */
static bool evict(struct drain *d)
{
    struct app *app = d->waiting.app;
    size_t n, n_changes = 0;
    look_anew(d);
    cleanup_free const struct allocation **pods = find_pods(d, &n);
    cleanup_with(pod_set) struct pod_set *set =
        applied_get(embedded_of(&app->source)->store.applied);
    free(d->changes);
    d->changes = xcalloc(n + 1, sizeof *d->changes);
    for (size_t i = 0; i < n; i++) {
        const struct demand *pod = &pods[i]->demand;
        if (pod_set_find_uid(set, pod->uid))
            d->changes[n_changes++] =
                (struct pod_change){.kind = APPLIED_DELETE,
                                    .namespace = pod->namespace,
                                    .name = pod->name,
                                    .uid = pod->uid,
                                    .grace_s = -1};
    }
    if (n_changes == 0)
        return false;
    str_fini(&d->waiting.op.out);
    d->waiting.op = (struct writer_op){.kind = WRITER_PODS,
                                       .changes = d->changes,
                                       .n_changes = n_changes,
                                       .out = STR_INIT(STR_MAX_DEFAULT)};
    waiting_again(&d->waiting);
    return true;
}

/* Its pods are told to end.  One that has gone meanwhile undoes all: then the
 * others are told anew. */
static bool follow(struct waiting *w)
{
    struct drain *d = (struct drain *)w;
    if (d->evicts && w->op.result == 0)
        note_evicted(d);
    if (d->evicts)
        return w->op.result == -ENOENT && evict(d);
    d->evicts = w->op.result == 0 && !w->op.gone && bar_of(d)->evict;
    return d->evicts && evict(d);
}

static void answer(struct httpd_request *rq, struct waiting *w)
{
    struct drain *d = (struct drain *)w;
    int r = w->op.result;
    if (d->evicts && r < 0 && r != -ENOENT) {
        httpd_fail(rq, waiting_failure(w),
                   "it is drained, but its pods were not told to end: %s",
                   w->op.error.text);
    } else if (r < 0 && !d->evicts) {
        httpd_fail(rq, r == -EINVAL ? 400 : waiting_failure(w), "%s",
                   w->op.error.text);
    } else {
        if (!d->evicts)
            look_anew(d);
        reply(rq, d, w->op.gone);
    }
}

static const struct waiting_kind draining = {
    .follow = follow, .answer = answer, .destroy = drain_destroy};

/* By any thread. */
static void kept_there(struct pod_drain *there)
{
    struct drain *d = there->ctx;
    d->waiting.op.result = there->result;
    d->waiting.op.error = there->error;
    waiting_end(&d->waiting);
}

static void post(struct httpd_request *rq, struct app *app, struct drain *d,
                 bool gone)
{
    d->waiting.op = (struct writer_op){
        .kind = WRITER_DRAIN, .node = d->node, .bars = d->bars, .gone = gone};
    if (!pod_source_has(&app->source, drain)) {
        waiting_post(&d->waiting, &draining, rq, app);
        return;
    }
    d->there = (struct pod_drain){.node = d->node,
                                  .bar = bar_of(d),
                                  .gone = gone,
                                  .done = kept_there,
                                  .ctx = d};
    waiting_begin(&d->waiting, &draining, rq, app);
    app->source.ops->drain(app->source.ctx, &d->there);
}

/* --- the routes ----------------------------------------------------------- */

static struct drain *drain_create(struct app *app)
{
    struct drain *d = xcalloc(1, sizeof *d);
    d->bars = card_bars_create(1);
    bar_of(d)->drains = true;
    d->snapshot = writer_snapshot(app->writer);
    return d;
}

/* As far as is known here: of a node that is not there the one who keeps it
 * knows. */
static bool is_undrained(const struct drain *d)
{
    int32_t i = snapshot_find(d->snapshot, d->node, strlen(d->node));
    const struct card_bar *known =
        i == NODE_NONE
            ? bar_of(d)
            : card_bars_drain(snapshot_node(d->snapshot, (size_t)i)->bars,
                              bar_of(d)->card);
    return !known || strcmp(known->card, bar_of(d)->card) != 0;
}

void on_drain(struct httpd_request *rq, void *ctx)
{
    struct app *app = ctx;
    struct error err = {0};
    if (!httpd_query_only(rq, no_params) || !query_is_json(rq))
        return;
    struct drain *d = drain_create(app);
    struct card_bar *bar = bar_of(d);
    if (read_body(rq, bar, &err) < 0) {
        httpd_fail(rq, httpd_unread(&err), "%s", err.text);
        drain_free(d);
        return;
    }
    if (!find_target(rq, d, false)) {
        drain_free(d);
        return;
    }
    clock_format_utc(clock_wall_s(), bar->since);
    card_drain_explain(bar);
    post(rq, app, d, false);
}

void on_undrain(struct httpd_request *rq, void *ctx)
{
    struct app *app = ctx;
    if (!httpd_query_only(rq, no_params))
        return;
    struct drain *d = drain_create(app);
    if (!find_target(rq, d, true)) {
        drain_free(d);
        return;
    }
    (void)snprintf(bar_of(d)->by, sizeof bar_of(d)->by, "%s", httpd_user(rq));
    if (is_undrained(d)) {
        bool card = bar_of(d)->card[0]; /* as it was called */
        httpd_fail(rq, 404, "%.253s%s%.63s is not drained", d->node,
                   card ? "/" : "", card ? httpd_arg(rq, 1) : "");
        drain_free(d);
        return;
    }
    post(rq, app, d, true);
}
