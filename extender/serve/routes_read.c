#include "extender/serve/routes_read.h"

#include <string.h>

#include "extender/admit/access.h"
#include "extender/app/changes.h"
#include "extender/serve/app.h"
#include "extender/serve/page.h"
#include "extender/serve/query.h"
#include "extender/serve/routes_drawing.h"
#include "extender/serve/routes_private.h"
#include "extender/view/openapi.h"
#include "extender/view/views.h"
#include "lib/base/jwrite.h"
#include "lib/base/lower_bound.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"

enum {
    TOPOLOGY_DEFAULT = 100,
    TOPOLOGY_MAX = 1000,
};

/* --- pages of lists ------------------------------------------------------- */

/* One list of what a snapshot has. */
struct list {
    struct page page;
    struct app *app;
    struct snapshot *snapshot;
};

/* False when the reply is set already; else list_end() has to follow. */
static bool list_begin(struct list *list, struct httpd_request *rq,
                       struct app *app, const char *const *heads)
{
    size_t limit = heads ? QUERY_LIMIT : TOPOLOGY_DEFAULT;
    if (!query_limit(rq, heads ? QUERY_LIMIT_MAX : TOPOLOGY_MAX, &limit))
        return false;
    cleanup_with(snapshot) struct snapshot *s = visible_snapshot(app, rq);
    if (query_is_current(rq, app, s))
        return false;
    page_begin(&list->page, rq, limit, heads, "snapshot", s->number);
    list->app = app;
    list->snapshot = steal(&s);
    return true;
}

static void list_end(struct list *list)
{
    page_end(&list->page);
    snapshot_unref(list->snapshot);
}

/* The index of the first node whose name is not below `name`. */
static size_t node_from(const struct snapshot *s, const char *name)
{
    return lower_bound(s->n_nodes, i,
                       strcmp(snapshot_node(s, i)->name, name) < 0);
}

/* The node of a name; NULL, with the request failed, when it is not known. */
static const struct node *node_find(struct httpd_request *rq,
                                    const struct snapshot *s, const char *name)
{
    int32_t i = snapshot_find(s, name, strlen(name));
    if (i != NODE_NONE)
        return snapshot_node(s, (size_t)i);
    httpd_fail(rq, 404, "node \"%.253s\" has not published a slice", name);
    return NULL;
}

/* --- nodes ---------------------------------------------------------------- */

static const char *status_word(unsigned index)
{
    return node_status_name((enum node_status)index);
}

static void on_nodes(struct httpd_request *rq, void *ctx)
{
    static const char *const params[] = {"continue", "limit", "status", NULL};
    unsigned status;
    struct list list;
    if (!httpd_query_only(rq, params) ||
        !query_choice(rq, "status", status_word, NODE_STATUSES, &status) ||
        !list_begin(&list, rq, ctx, view_node_heads))
        return;
    const struct snapshot *s = list.snapshot;
    for (size_t i = list.page.after ? node_from(s, list.page.after) : 0;
         i < s->n_nodes; i++) {
        const struct node *node = snapshot_node(s, i);
        if (list.page.after && strcmp(node->name, list.page.after) == 0)
            continue;
        if (status < NODE_STATUSES && node->status != status)
            continue;
        if (!page_next(&list.page, node->name, NULL))
            break;
        if (list.page.text)
            view_node_row(node, &list.page.table);
        else
            view_node(node, list.page.out);
    }
    list_end(&list);
}

static void node_text(const struct snapshot *s, struct achieved_book *book,
                      const struct node *node, struct str *out)
{
    struct table t;
    size_t first, n_cards = view_count(node, DEVICE_CARD, &first);
    table_init(&t, view_node_heads);
    view_node_row(node, &t);
    table_write_text(&t, out);
    table_fini(&t);
    if (n_cards) {
        table_init(&t, view_card_heads);
        for (size_t i = 0; i < n_cards; i++)
            view_card_row(node, i, &t);
        str_add_c(out, '\n');
        table_write_text(&t, out);
        table_fini(&t);
    }
    if (node->n_allocations) {
        table_init(&t, view_allocation_heads);
        for (size_t i = 0; i < node->n_allocations; i++)
            view_allocation_row(s, book, node->allocations[i], &t);
        table_sort(&t);
        str_add_c(out, '\n');
        table_write_text(&t, out);
        table_fini(&t);
    }
}

static const char *const no_params[] = {NULL};

static void on_node(struct httpd_request *rq, void *ctx)
{
    struct app *app = ctx;
    if (!httpd_query_only(rq, no_params))
        return;
    cleanup_with(snapshot) struct snapshot *s = visible_snapshot(app, rq);
    const struct node *node = node_find(rq, s, httpd_arg(rq, 0));
    if (!node)
        return;
    if (httpd_wants(rq, DRAWING_TYPE)) {
        reply_node_drawing(rq, app, s, node);
        return;
    }
    httpd_set_header(rq, "Vary", "Accept");
    if (httpd_wants_text(rq)) {
        httpd_content_type(rq, HTTPD_TEXT);
        node_text(s, app->achieved, node, httpd_reply(rq));
    } else {
        int32_t index = snapshot_find(s, node->name, strlen(node->name));
        view_node_whole(s, (size_t)index, clock_ms(), httpd_reply(rq));
        str_add_c(httpd_reply(rq), '\n');
    }
}

static void on_node_drawing(struct httpd_request *rq, void *ctx)
{
    struct app *app = ctx;
    if (!httpd_query_only(rq, no_params))
        return;
    cleanup_with(snapshot) struct snapshot *s = visible_snapshot(app, rq);
    const struct node *node = node_find(rq, s, httpd_arg(rq, 0));
    if (node)
        reply_node_drawing(rq, app, s, node);
}

/* --- cards ---------------------------------------------------------------- */

static const char *card_id(const struct node *node, size_t card)
{
    size_t first;
    (void)view_count(node, DEVICE_CARD, &first);
    return topo_device(node->topo, first + card)->id;
}

static const char *state_word(unsigned index)
{
    return card_state_name((enum card_state)index);
}

/* The cards of one node; `after` (or NULL) names the last one that was given
 * already.  False when the list is full. */
static bool list_cards(struct list *list, const struct node *node,
                       const char *after, unsigned state)
{
    size_t first, n = view_count(node, DEVICE_CARD, &first);
    for (size_t i = 0; i < n; i++) {
        const char *id = card_id(node, i);
        if (after) {
            /* cards stand in the order of their addresses, not ids */
            if (strcmp(id, after) == 0)
                after = NULL;
            continue;
        }
        if (state < CARD_STATES && card_state(node, i) != state)
            continue;
        if (!page_next(&list->page, node->name, id))
            return false;
        if (list->page.text) {
            view_card_row(node, i, &list->page.table);
            continue;
        }
        view_card(node, list->snapshot->policy, i, list->page.out);
        pod_source_tell(&list->app->source, add_to_card, node, i,
                        list->page.out);
    }
    return true;
}

/* Where a continue token "NODE/CARD" leaves off.  A card that has gone since
 * is taken as the node's last. */
static size_t cards_from(const struct list *list, char node[PAGE_KEY_MAX],
                         const char **ret_card)
{
    const char *slash = list->page.after ? strchr(list->page.after, '/') : NULL;
    *ret_card = NULL;
    if (!list->page.after)
        return 0;
    size_t size = slash ? (size_t)(slash - list->page.after)
                        : strlen(list->page.after);
    if (size >= PAGE_KEY_MAX)
        size = PAGE_KEY_MAX - 1;
    memcpy(node, list->page.after, size);
    node[size] = '\0';
    *ret_card = slash ? slash + 1 : "";
    return node_from(list->snapshot, node);
}

static void on_cards(struct httpd_request *rq, void *ctx)
{
    static const char *const params[] = {"continue", "limit", "node", "state",
                                         NULL};
    const char *only = httpd_query(rq, "node");
    const char *card;
    unsigned state;
    char from[PAGE_KEY_MAX] = "";
    struct list list;
    if (!httpd_query_only(rq, params) ||
        !query_choice(rq, "state", state_word, CARD_STATES, &state) ||
        !list_begin(&list, rq, ctx, view_card_heads))
        return;
    const struct snapshot *s = list.snapshot;
    if (only && !node_find(rq, s, only)) {
        page_drop(&list.page);
        snapshot_unref(list.snapshot);
        return;
    }
    size_t first = only ? node_from(s, only) : 0;
    size_t resume = cards_from(&list, from, &card);
    for (size_t i = resume > first ? resume : first; i < s->n_nodes; i++) {
        const struct node *node = snapshot_node(s, i);
        bool resumed = card && strcmp(node->name, from) == 0;
        if (only && strcmp(node->name, only) != 0)
            break;
        if (!list_cards(&list, node, resumed ? card : NULL, state))
            break;
    }
    list_end(&list);
}

static void on_card(struct httpd_request *rq, void *ctx)
{
    struct app *app = ctx;
    if (!httpd_query_only(rq, no_params))
        return;
    cleanup_with(snapshot) struct snapshot *s = visible_snapshot(app, rq);
    const struct node *node = node_find(rq, s, httpd_arg(rq, 0));
    size_t first, n = node ? view_count(node, DEVICE_CARD, &first) : 0, i = 0;
    if (!node)
        return;
    while (i < n && strcmp(card_id(node, i), httpd_arg(rq, 1)) != 0)
        i++;
    if (i == n) {
        httpd_fail(rq, 404, "node \"%.253s\" has no card \"%.63s\"", node->name,
                   httpd_arg(rq, 1));
        return;
    }
    view_card(node, s->policy, i, httpd_reply(rq));
    pod_source_tell(&app->source, add_to_card, node, i, httpd_reply(rq));
    str_add_c(httpd_reply(rq), '\n');
}

/* --- topology ------------------------------------------------------------- */

static void topology_of(struct httpd_request *rq, struct app *app,
                        const char *name)
{
    cleanup_with(snapshot) struct snapshot *s = visible_snapshot(app, rq);
    const struct node *node = node_find(rq, s, name);
    if (!node || query_is_current(rq, app, s))
        return;
    view_topology(node, httpd_reply(rq));
    str_add_c(httpd_reply(rq), '\n');
}

static void on_topology(struct httpd_request *rq, void *ctx)
{
    static const char *const params[] = {"continue", "limit", "node", NULL};
    const char *only = httpd_query(rq, "node");
    struct list list;
    if (httpd_query(rq, "at")) {
        on_topology_then(rq, ctx);
        return;
    }
    if (!httpd_query_only(rq, params))
        return;
    if (only) {
        topology_of(rq, ctx, only);
        return;
    }
    if (!list_begin(&list, rq, ctx, NULL))
        return;
    const struct snapshot *s = list.snapshot;
    for (size_t i = list.page.after ? node_from(s, list.page.after) : 0;
         i < s->n_nodes; i++) {
        const struct node *node = snapshot_node(s, i);
        if (list.page.after && strcmp(node->name, list.page.after) == 0)
            continue;
        if (!page_next(&list.page, node->name, NULL))
            break;
        view_topology(node, list.page.out);
    }
    list_end(&list);
}

/* --- allocations ---------------------------------------------------------- */

/* Where the page begins. */
static size_t allocations_from(const struct list *list, const char *namespace,
                               const struct allocation *const *all, size_t n)
{
    const char *after = list->page.after;
    size_t behind = 0, from = 0;
    if (after)
        behind = lower_bound(n, i,
                             !query_is_after(all[i]->demand.namespace,
                                             all[i]->demand.name, after));
    if (namespace)
        from = lower_bound(n, i,
                           strcmp(all[i]->demand.namespace, namespace) < 0);
    return behind > from ? behind : from;
}

static void on_allocations(struct httpd_request *rq, void *ctx)
{
    static const char *const params[] = {"continue", "limit", "namespace",
                                         "node", NULL};
    const char *node = httpd_query(rq, "node");
    const char *namespace = httpd_query(rq, "namespace");
    struct list list;
    size_t n;
    if (!httpd_query_only(rq, params) ||
        !list_begin(&list, rq, ctx, view_allocation_heads))
        return;
    cleanup_with(alloc_order) struct alloc_order *order =
        visible_order(ctx, list.snapshot);
    cleanup_free const struct allocation **on_node =
        node ? alloc_index_on_node(order->of, node, &n) : NULL;
    const struct allocation *const *all = node ? on_node : order->pods;
    n = node ? n : order->n_pods;
    for (size_t i = allocations_from(&list, namespace, all, n); i < n; i++) {
        const struct demand *d = &all[i]->demand;
        if (namespace && strcmp(d->namespace, namespace) != 0)
            break;
        if (!page_next(&list.page, d->namespace, d->name))
            break;
        if (list.page.text) {
            view_allocation_row(list.snapshot, list.app->achieved, all[i],
                                &list.page.table);
            continue;
        }
        view_allocation(list.snapshot, list.app->achieved, all[i],
                        list.page.out);
        pod_source_tell(&list.app->source, add_to_allocation, all[i],
                        list.page.out);
    }
    list_end(&list);
}

static void on_allocation(struct httpd_request *rq, void *ctx)
{
    struct app *app = ctx;
    if (!httpd_query_only(rq, no_params))
        return;
    cleanup_with(snapshot) struct snapshot *s = visible_snapshot(app, rq);
    const struct allocation *a =
        alloc_index_find(s->allocations, httpd_arg(rq, 0), httpd_arg(rq, 1));
    if (!a) {
        httpd_fail(rq, 404, "pod %.63s/%.253s has no allocation",
                   httpd_arg(rq, 0), httpd_arg(rq, 1));
        return;
    }
    view_allocation(s, app->achieved, a, httpd_reply(rq));
    pod_source_tell(&app->source, add_to_allocation, a, httpd_reply(rq));
    str_add_c(httpd_reply(rq), '\n');
}

/* --- metrics, health, documents ------------------------------------------- */

static void reply_health(struct httpd_request *rq, const char *word,
                         size_t n_doubtful)
{
    struct str *out = httpd_reply(rq);
    if (httpd_wants_text(rq)) {
        httpd_content_type(rq, HTTPD_TEXT);
        str_addf(out, "%s\n", word);
        if (n_doubtful)
            str_addf(out, "doubtful nodes: %zu\n", n_doubtful);
        return;
    }
    jwrite_object(out, NULL);
    jwrite_text(out, "status", word);
    jwrite_known(out, "doubtful", n_doubtful);
    str_add(out, "}\n");
}

static void on_healthz(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    reply_health(rq, "ok", 0);
}

static size_t count_doubtful(struct app *app)
{
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(app->writer);
    size_t n = 0;
    for (size_t i = 0; i < s->n_nodes; i++)
        n += snapshot_node(s, i)->status == NODE_DOUBTFUL;
    return n;
}

static void on_readyz(struct httpd_request *rq, void *ctx)
{
    struct app *app = ctx;
    cleanup_str struct str why = STR_INIT(1024);
    bool ready = atomic_load(&app->ready);
    if (!ready)
        str_add(&why, "starting");
    else
        ready = pod_source_is_ready(&app->source, &why);
    if (!ready)
        httpd_status(rq, 503);
    /* of those nothing is given; the others are served */
    reply_health(rq, ready ? "ready" : str_text(&why), count_doubtful(app));
}

static void on_openapi(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    str_add(httpd_reply(rq), openapi_yaml);
    httpd_content_type(rq, "application/yaml");
}

static void on_changes(struct httpd_request *rq, void *ctx)
{
    struct app *app = ctx;
    if (httpd_query_only(rq, no_params))
        changes_follow(app->changes, rq, access_follower(rq, &app->listener));
}

const struct httpd_route read_routes[] = {
    {HTTPD_GET, "/v1/changes", on_changes, 0, "changes"},
    {HTTPD_GET, "/v1/nodes", on_nodes, 0, "nodes"},
    {HTTPD_GET, "/v1/nodes/:", on_node, 0, "node"},
    {HTTPD_GET, "/v1/nodes/:/drawing", on_node_drawing, 0, "node-drawing"},
    {HTTPD_GET, "/v1/cards", on_cards, 0, "cards"},
    {HTTPD_GET, "/v1/cards/:/:", on_card, 0, "card"},
    {HTTPD_GET, "/v1/topology", on_topology, 0, "topology"},
    {HTTPD_GET, "/v1/fabric", on_fabric, 0, "fabric"},
    {HTTPD_GET, "/v1/policy", on_policy, 0, "policy"},
    {HTTPD_GET, "/v1/allocations", on_allocations, 0, "allocations"},
    {HTTPD_GET, "/v1/allocations/:/:", on_allocation, 0, "allocation"},
    {HTTPD_DELETE, "/v1/allocations/:/:", handle_release, 0, "release"},
    {HTTPD_DELETE, "/v1/doubt", handle_trust, 0, "trust"},
    {HTTPD_DELETE, "/v1/doubt/:", handle_trust, 0, "trust"},
    {HTTPD_GET, "/v1/jobs", on_jobs, 0, "jobs"},
    {HTTPD_GET, "/v1/jobs/:/:", on_job, 0, "job"},
    {HTTPD_DELETE, "/v1/jobs/:/:/allocations", handle_release_job, 0,
     "job-release"},
    {HTTPD_GET, "/v1/jobs/:/:/drawing", on_job_drawing, 0, "job-drawing"},
    {HTTPD_GET, "/v1/jobs/:/:/maps", on_job_maps, 0, "job-maps"},
    {HTTPD_GET, "/v1/pending", on_pending, 0, "pending"},
    {HTTPD_GET, "/v1/events", on_events, 0, "events"},
    {HTTPD_GET, "/v1/history/:/:", on_history, 0, "history"},
    {HTTPD_GET, "/v1/history/:/:/:", on_history, 0, "history"},
    {HTTPD_GET, "/metrics", on_metrics, 0, "metrics"},
    {HTTPD_GET, "/healthz", on_healthz, 0, "healthz"},
    {HTTPD_GET, "/readyz", on_readyz, 0, "readyz"},
    {HTTPD_GET, "/openapi.yaml", on_openapi, 0, "openapi"},
};
const size_t n_read_routes = ARRAY_LEN(read_routes);
