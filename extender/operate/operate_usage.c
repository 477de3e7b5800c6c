/* What pods and places use of what they were given: GET /v1/usage, a page of
 * nodes. */
#include "extender/operate/operate.h"

#include <string.h>

#include "extender/achieved/used_book.h"
#include "extender/serve/app.h"
#include "extender/serve/page.h"
#include "extender/serve/query.h"
#include "extender/view/views.h"
#include "lib/base/jwrite.h"
#include "lib/io/clock.h"

struct usage_list {
    struct page page;
    struct used_book *book; /* NULL in a cluster: nobody tells */
    const struct snapshot *snapshot;
    int64_t now_ms;
};

/* What is not known is null. */
static void write_amount(struct str *out, const char *key, bool known,
                         int64_t value)
{
    jwrite_int_or_null(out, key, known ? value : -1);
}

static void write_used(struct str *out, const struct used *used)
{
    jwrite_object(out, "used");
    write_amount(out, "cpuMillicores", used->known, used->cpu_milli);
    write_amount(out, "memoryMiB", used->known, used->memory_mib);
    jwrite_known_text(out, "at", used->at);
    jwrite_end_object(out);
}

/* The members "given" and "total". */
struct amounts {
    bool knows_cpu, knows_memory;
    int64_t given_milli, given_mib, total_milli, total_mib;
};

static void write_amounts(struct str *out, const struct amounts *a)
{
    jwrite_object(out, "given");
    write_amount(out, "cpuMillicores", a->knows_cpu, a->given_milli);
    write_amount(out, "memoryMiB", a->knows_memory, a->given_mib);
    jwrite_end_object(out);
    jwrite_object(out, "total");
    write_amount(out, "cpuMillicores", a->total_milli > 0, a->total_milli);
    write_amount(out, "memoryMiB", a->total_mib > 0, a->total_mib);
    jwrite_end_object(out);
}

/* --- places --------------------------------------------------------------- */

static void write_card(struct usage_list *l, const struct node *node,
                       size_t card)
{
    const struct device *d = topo_device(node->topo, card);
    char pci[PCI_ADDR_TEXT_MAX];
    struct used used;
    struct amounts a = {.knows_cpu = d->cores && !d->unhealthy,
                        .knows_memory = d->memory_mib && !d->unhealthy,
                        .total_milli = (int64_t)d->cores * 1000,
                        .total_mib = (int64_t)d->memory_mib};
    a.given_milli = a.total_milli -
                    (int64_t)node->state.free_cores[card] * 1000;
    a.given_mib = a.total_mib - (int64_t)node->state.free_memory_mib[card];
    (void)used_book_place(l->book, node->name, d->id, l->now_ms, &used);
    if (d->has_pci)
        pci_addr_format(&d->pci, pci);
    jwrite_object(l->page.out, NULL);
    jwrite_text(l->page.out, "id", d->id);
    jwrite_text_or_null(l->page.out, "pci", d->has_pci ? pci : NULL);
    write_used(l->page.out, &used);
    write_amounts(l->page.out, &a);
    jwrite_end_object(l->page.out);
}

/* Of the host: what its host pods have asked for. */
static struct amounts host_amounts(const struct node *node)
{
    struct amounts a = {.knows_cpu = true, .knows_memory = true};
    size_t first, n = view_count(node, DEVICE_NUMA, &first);
    for (size_t i = 0; i < n; i++) {
        const struct device *d = topo_device(node->topo, first + i);
        a.total_milli += (int64_t)d->cpus * 1000;
        a.total_mib += (int64_t)d->numa_memory_mib;
    }
    for (size_t i = 0; i < node->n_allocations; i++) {
        const struct demand *d = &node->allocations[i]->demand;
        if (d->role != ROLE_HOST)
            continue;
        a.given_milli += d->cpu_milli;
        a.given_mib += d->memory_mib;
    }
    return a;
}

/* --- pods ----------------------------------------------------------------- */

/* What it asked for; of a card of which it stated nothing that is not known. */
static struct amounts pod_amounts(const struct allocation *a)
{
    const struct demand *d = &a->demand;
    if (d->role == ROLE_HOST)
        return (struct amounts){.knows_cpu = d->cpu_milli > 0,
                                .knows_memory = d->memory_mib > 0,
                                .given_milli = d->cpu_milli,
                                .given_mib = d->memory_mib};
    return (struct amounts){
        .knows_cpu = d->card_cores > 0,
        .knows_memory = d->card_memory_mib > 0,
        .given_milli = (int64_t)d->card_cores * a->n_cards * 1000,
        .given_mib = (int64_t)d->card_memory_mib * a->n_cards};
}

static void write_pod(struct usage_list *l, const struct allocation *a)
{
    const struct amounts amounts = pod_amounts(a);
    struct used used;
    (void)used_book_pod(l->book, a->node, a->demand.uid, l->now_ms, &used);
    jwrite_object(l->page.out, NULL);
    jwrite_text(l->page.out, "namespace", a->demand.namespace);
    jwrite_text(l->page.out, "name", a->demand.name);
    jwrite_text(l->page.out, "role", pod_role_name(a->demand.role));
    write_used(l->page.out, &used);
    write_amounts(l->page.out, &amounts);
    jwrite_end_object(l->page.out);
}

/* --- nodes ---------------------------------------------------------------- */

static void write_node(struct usage_list *l, const struct node *node)
{
    struct str *out = l->page.out;
    const struct amounts host = host_amounts(node);
    struct used used;
    size_t first, n_cards = view_count(node, DEVICE_CARD, &first);
    (void)used_book_place(l->book, node->name, "host", l->now_ms, &used);
    jwrite_object(out, NULL);
    jwrite_text(out, "node", node->name);
    write_used(out, &used);
    write_amounts(out, &host);
    jwrite_array(out, "cards");
    for (size_t i = 0; i < n_cards && i < TOPO_CARDS_MAX; i++)
        write_card(l, node, i);
    jwrite_end_array(out);
    jwrite_array(out, "pods");
    for (size_t i = 0; i < node->n_allocations; i++)
        if (!node->allocations[i]->held)
            write_pod(l, node->allocations[i]);
    jwrite_end_array(out);
    jwrite_end_object(out);
}

static void list_nodes(struct usage_list *l, const char *only)
{
    for (size_t i = 0; i < l->snapshot->n_nodes; i++) {
        const struct node *node = snapshot_node(l->snapshot, i);
        if ((l->page.after && strcmp(node->name, l->page.after) <= 0) ||
            (only && strcmp(node->name, only) != 0))
            continue;
        if (!page_next(&l->page, node->name, NULL))
            return;
        write_node(l, node);
    }
}

void on_usage(struct httpd_request *rq, void *ctx)
{
    static const char *const params[] = {"continue", "limit", "node", NULL};
    struct app *app = ctx;
    const char *only = httpd_query(rq, "node");
    size_t limit = QUERY_LIMIT;
    struct usage_list l = {.book = app->used, .now_ms = clock_ms()};
    if (!httpd_query_only(rq, params) ||
        !query_limit(rq, QUERY_LIMIT_MAX, &limit))
        return;
    cleanup_with(snapshot) struct snapshot *s = visible_snapshot(app, rq);
    if (only && snapshot_find(s, only, strlen(only)) == NODE_NONE) {
        httpd_fail(rq, 404, "node \"%.253s\" has not published a slice", only);
        return;
    }
    if (query_has_version(rq, app, s->number,
                          used_book_version(app->used, l.now_ms)))
        return;
    l.snapshot = s;
    page_begin(&l.page, rq, limit, NULL, "snapshot", s->number);
    list_nodes(&l, only);
    page_end(&l.page);
}
