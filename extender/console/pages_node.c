#include "extender/console/pages.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "extender/achieved/achieved.h"
#include "extender/console/console_map.h"
#include "extender/console/console_then.h"
#include "extender/console/html.h"
#include "extender/judge/alignment.h"
#include "extender/serve/routes_drawing.h"
#include "extender/view/node_drawing.h"
#include "extender/view/views.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"

/* --- pods: who has what --------------------------------------------------- */

/* Devices by their PCI addresses, as far as they were told. */
static void ids_cell(char (*ids)[TOPO_ID_MAX + 1],
                     char (*pci)[PCI_ADDR_TEXT_MAX], size_t n, const char *node,
                     struct str *out)
{
    str_add(out, "<td>");
    for (size_t i = 0; i < n; i++) {
        const char *text = pci && *pci[i] ? pci[i] : ids[i];
        str_add(out, i ? "<br>" : "");
        if (node)
            html_add_link(out, "cards", node, ids[i], text);
        else
            html_addf(out, "%s", text);
    }
    str_add(out, n ? "</td>" : "–</td>");
}

static void achieved_cell(const struct console_reply *r,
                          const struct allocation *a, struct str *out)
{
    cleanup_with(achieved_report) struct achieved_report *report =
        achieved_book_get(r->app->achieved, a->node);
    struct achieved x;
    str_add(out, "<td>");
    if (!a->held && report && achieved_counts(a)) {
        achieved_judge(r->snapshot, a, report, &x, NULL);
        html_add_badge(out,
                       x.state == ACHIEVED_LOST
                           ? "bad"
                           : relation_class(achieved_word(&x)),
                       achieved_word(&x));
        if (x.state == ACHIEVED_LOST)
            str_add(out, " lost");
    }
    str_add(out, "</td>");
}

void place_cells_write(const struct console_reply *r,
                       const struct allocation *a, struct str *out)
{
    const char *word = alignment_word(r->snapshot, a);
    ids_cell(a->cards, a->card_pci, a->n_cards, a->node, out);
    ids_cell(a->gpus, a->gpu_pci, a->n_gpus, NULL, out);
    html_addf(out, "<td class=\"n\">%" PRId32 "</td><td>", a->numa);
    if (achieved_counts(a)) /* a service is near to nothing of its own */
        html_add_badge(out, relation_class(word), word);
    str_add(out, "</td>");
    achieved_cell(r, a, out);
}

static void pod_row(const struct console_reply *r, const struct allocation *a,
                    struct str *out)
{
    const struct demand *d = &a->demand;
    str_add(out, "<tr><th scope=\"row\">");
    if (a->held)
        html_addf(out, "held for %s/%s", d->namespace, d->name);
    else
        html_add_link(out, "pods", d->namespace, d->name, d->name);
    html_addf(out, "</th><td>%s</td><td>%s</td><td>", d->namespace,
              pod_role_name(d->role));
    if (*d->job) {
        html_add_link(out, "jobs", d->namespace, d->job, d->job);
        html_addf(out, " <small>pair %" PRId32 "</small>", d->pair);
    }
    str_add(out, "</td>");
    place_cells_write(r, a, out);
    str_add(out, "</tr>\n");
}

void pods_table_write(const struct console_reply *r,
                      const struct allocation *const *list, size_t n,
                      struct str *out)
{
    if (n == 0) {
        str_add(out, "<p>Nobody.</p>\n");
        return;
    }
    str_add(out, "<div class=\"wide\"><table class=\"rows\"><thead><tr>"
                 "<th scope=\"col\">Pod</th><th scope=\"col\">Namespace</th>"
                 "<th scope=\"col\">Role</th><th scope=\"col\">Job</th>");
    str_add(out, PLACE_HEADS "</tr></thead><tbody>\n");
    for (size_t i = 0; i < n; i++)
        pod_row(r, list[i], out);
    str_add(out, "</tbody></table></div>\n");
}

/* --- cards ---------------------------------------------------------------- */

static const char *state_class(enum card_state state)
{
    static const char *const classes[CARD_STATES] = {
        [CARD_IDLE] = "free",     [CARD_USED] = "use",
        [CARD_HELD] = "use",      [CARD_UNHEALTHY] = "bad",
        [CARD_DRAINED] = "drain", [CARD_UNAVAILABLE] = "dim"};
    return classes[state];
}

static bool has_card(const struct allocation *a, const char *id)
{
    for (size_t i = 0; i < a->n_cards; i++)
        if (strcmp(a->cards[i], id) == 0)
            return true;
    return false;
}

/* What a person calls the card: its PCI address. */
static const char *card_name(const struct device *d,
                             char name[PCI_ADDR_TEXT_MAX])
{
    if (!d->has_pci)
        return d->id;
    pci_addr_format(&d->pci, name);
    return name;
}

static void card_health(const struct device *d, enum card_state state,
                        struct str *out)
{
    html_add_badge(out, state_class(state), card_state_name(state));
    if (*d->health && strcmp(d->health, "ready") != 0 &&
        strcmp(d->health, card_state_name(state)) != 0)
        html_addf(out, " %s", d->health);
    if (*d->barred)
        html_addf(out, " <small>%s</small>", d->barred);
}

static void card_row(const struct node *node, size_t card, struct str *out)
{
    size_t first, shown = 0;
    char name[PCI_ADDR_TEXT_MAX];
    (void)view_count(node, DEVICE_CARD, &first);
    const struct device *d = topo_device(node->topo, first + card);
    str_add(out, "<tr><th scope=\"row\">");
    html_add_link(out, "cards", node->name, d->id, card_name(d, name));
    html_addf(out,
              "</th><td>%s <small>%s</small></td><td class=\"n\">%d</td>"
              "<td>",
              d->model, d->arch, d->numa);
    if (card < TOPO_CARDS_MAX)
        html_add_bar(out, node->state.free_cores[card], d->cores, "");
    str_add(out, "</td><td>");
    if (card < TOPO_CARDS_MAX)
        html_add_bar(out, node->state.free_memory_mib[card], d->memory_mib,
                     "MiB");
    str_add(out, "</td><td>");
    card_health(d, card_state(node, card), out);
    str_add(out, "</td><td>");
    for (size_t i = 0; i < node->n_allocations; i++) {
        const struct demand *pod = &node->allocations[i]->demand;
        if (node->allocations[i]->held ||
            !has_card(node->allocations[i], d->id))
            continue;
        str_add(out, shown++ ? ", " : "");
        html_add_link(out, "pods", pod->namespace, pod->name, pod->name);
    }
    str_add(out, "</td></tr>\n");
}

static void write_cards(const struct node *node, struct str *out)
{
    size_t first, n = view_count(node, DEVICE_CARD, &first);
    if (n == 0)
        return;
    str_add(out,
            "<h2>Cards</h2>\n<div class=\"wide\"><table class=\"rows\">"
            "<thead><tr><th scope=\"col\">Card</th><th scope=\"col\">Model"
            "</th><th scope=\"col\" class=\"n\">NUMA</th><th scope=\"col\">"
            "Cores free</th><th scope=\"col\">Memory free</th>"
            "<th scope=\"col\">State</th><th scope=\"col\">Pods</th></tr>"
            "</thead><tbody>\n");
    for (size_t i = 0; i < n; i++)
        card_row(node, i, out);
    str_add(out, "</tbody></table></div>\n");
}

/* --- the host ------------------------------------------------------------- */

/* What the host pods that were given this NUMA node leave of its memory. */
static void numa_memory(const struct node *node, const struct device *d,
                        struct str *out)
{
    uint64_t free_mib = d->numa_memory_mib;
    for (size_t i = 0; i < node->n_allocations; i++) {
        const struct allocation *a = node->allocations[i];
        uint64_t given = a->demand.role == ROLE_HOST && a->numa == d->numa
                             ? a->demand.memory_mib
                             : 0;
        free_mib -= given < free_mib ? given : free_mib;
    }
    if (d->numa_memory_mib == 0)
        return;
    html_addf(out, "<div><dt>Memory of NUMA %d</dt><dd>", d->numa);
    html_add_bar(out, free_mib / 1024, d->numa_memory_mib / 1024, "GiB");
    str_add(out, "</dd></div>");
}

static void write_host(const struct console_reply *r, const struct node *node,
                       size_t index, struct str *out)
{
    const struct shape *shape = node->shape;
    const struct host_room room = snapshot_room_left(r->snapshot, index);
    struct console_health h;
    console_health_judge(r->snapshot, r->app->achieved, node, &h);
    str_add(out, "<dl class=\"facts\"><div><dt>Cards</dt><dd>");
    html_add_bar(out, h.idle, h.cards, "");
    str_add(out, "</dd></div><div><dt>GPUs</dt><dd>");
    html_add_bar(out, h.free_gpus, h.gpus, "");
    str_add(out, "</dd></div>");
    for (size_t i = 0; shape && i < shape->n_numas; i++) {
        uint32_t milli = node->state.free_cpu_milli[i];
        if (milli == UINT32_MAX || shape->numa_cpus[i] == 0)
            continue;
        html_addf(out, "<div><dt>CPUs of NUMA %d</dt><dd>", shape->numa_id[i]);
        html_add_bar(out, milli / 1000, shape->numa_cpus[i], "");
        str_add(out, "</dd></div>");
    }
    size_t first, n = view_count(node, DEVICE_NUMA, &first);
    for (size_t i = 0; i < n; i++)
        numa_memory(node, topo_device(node->topo, first + i), out);
    if (room.memory_mib != INT64_MAX)
        html_addf(out,
                  "<div><dt>Memory left</dt><dd>%" PRId64 " MiB</dd></div>",
                  room.memory_mib);
    str_add(out, "</dl>\n");
}

/* When it was heard last; of a node that is heard it changes all the time, and
 * says nothing. */
static void write_silence(const struct node *node, struct str *out)
{
    char text[32];
    struct tm tm;
    int64_t ago_ms = clock_ms() - atomic_load(&node->liveness->heard_ms);
    time_t then = (time_t)(time(NULL) - ago_ms / 1000);
    if (!node_status_is_silent(node->status) || !gmtime_r(&then, &tm))
        return;
    (void)strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &tm);
    html_addf(out, "; not heard since %s", text);
}

static const struct node *find_node(struct console_reply *r, const char *name,
                                    size_t *ret_index)
{
    int32_t i = snapshot_find(r->snapshot, name, strlen(name));
    r->page.title = name;
    if (i == NODE_NONE) {
        console_miss(r, "Node \"%.253s\" has not published a slice.", name);
        return NULL;
    }
    *ret_index = (size_t)i;
    return snapshot_node(r->snapshot, (size_t)i);
}

static void write_path(const struct snapshot *s, size_t index, struct str *out)
{
    int32_t leaf = snapshot_leaf(s, index);
    str_add(out, "<p class=\"path\"><a href=\"/\">Fleet</a>");
    if (leaf != FABRIC_NONE) {
        str_add(out, " / ");
        html_add_link(out, "leaves", fabric_domain(s->fabric, leaf)->name, NULL,
                      fabric_domain(s->fabric, leaf)->name);
    }
}

static void write_health(const struct console_reply *r, const struct node *node,
                         struct str *out)
{
    cleanup_str struct str why = STR_INIT(STR_MAX_DEFAULT);
    console_health_explain(r->snapshot, r->app->achieved, node, &why);
    if (why.size == 0)
        return;
    html_addf(out, "<p class=\"alert\">%s", str_text(&why));
    write_silence(node, out);
    str_add(out, "</p>\n");
}

static void write_drawing(const struct console_reply *r, size_t index,
                          struct str *out)
{
    const struct node_drawing drawing = {.snapshot = r->snapshot,
                                         .index = index,
                                         .form = DRAWING_INLINE,
                                         .add_health = drawing_add_health,
                                         .ctx = r->app};
    if (!snapshot_node(r->snapshot, index)->topo)
        return;
    str_add(out, "<div class=\"drawing\" tabindex=\"0\" role=\"region\" "
                 "aria-label=\"Drawing of the node\">");
    node_drawing_write(&drawing, out);
    str_add(out, "</div>\n");
}

static void write_node(struct console_reply *r, const struct node *node,
                       size_t index)
{
    struct str *out = &r->out;
    write_path(r->snapshot, index, out);
    html_addf(out, "</p>\n<h1>%s ", node->name);
    html_add_badge(out, node->status == NODE_READY ? "good" : "bad",
                   node_status_name(node->status));
    str_add(out, "</h1>\n");
    write_health(r, node, out);
    write_host(r, node, index, out);
    write_drawing(r, index, out);
    write_cards(node, out);
    str_add(out, "<h2>Who has what</h2>\n");
    pods_table_write(r, (const struct allocation *const *)node->allocations,
                     node->n_allocations, out);
}

void page_node(struct httpd_request *rq, void *ctx)
{
    struct console_reply r;
    static const char *const params[] = {"at", NULL};
    size_t index;
    if (!console_begin(&r, rq, ctx, CONSOLE_NODES, params))
        return;
    if (console_then_is_asked(&r)) {
        r.page.title = httpd_arg(rq, 0);
        console_then_show(&r, HISTORY_NODE, xstrdup(r.page.title));
        return;
    }
    const struct node *node = find_node(&r, httpd_arg(rq, 0), &index);
    if (!node) {
        console_end(&r);
        return;
    }
    write_node(&r, node, index);
    console_then_events(&r, HISTORY_NODE, xstrdup(node->name));
}

/* --- a card --------------------------------------------------------------- */

static void fact(struct str *out, const char *name, const char *text)
{
    if (*text)
        html_addf(out, "<div><dt>%s</dt><dd>%s</dd></div>", name, text);
}

static void write_card_facts(const struct node *node, size_t card,
                             const struct device *d, struct str *out)
{
    const struct identity own = topo_identity(node->topo, d);
    char pci[PCI_ADDR_TEXT_MAX] = "";
    if (d->has_pci)
        pci_addr_format(&d->pci, pci);
    str_add(out, "<dl class=\"facts\">");
    if (card < TOPO_CARDS_MAX && d->cores) {
        str_add(out, "<div><dt>Cores</dt><dd>");
        html_add_bar(out, node->state.free_cores[card], d->cores, "");
        str_add(out, "</dd></div>");
    }
    if (card < TOPO_CARDS_MAX && d->memory_mib) {
        str_add(out, "<div><dt>Memory, MiB</dt><dd>");
        html_add_bar(out, node->state.free_memory_mib[card], d->memory_mib, "");
        str_add(out, "</dd></div>");
    }
    fact(out, "PCI address", pci);
    fact(out, "Id", d->id);
    fact(out, "Vendor", d->vendor);
    fact(out, "Model", d->model);
    fact(out, "Serial number", own.serial);
    fact(out, "Architecture", d->arch);
    fact(out, "Interface", d->interface);
    fact(out, "RDMA device", d->rdma);
    fact(out, "Runtime", own.endpoint);
    fact(out, "Fabric port", own.fabric_port);
    fact(out, "Health", d->health);
    fact(out, "Barred", d->barred);
    html_addf(out, "<div><dt>NUMA node</dt><dd>%d</dd></div></dl>\n", d->numa);
}

/* Those of the node that have the card. */
static void write_card_pods(const struct console_reply *r,
                            const struct node *node, const struct device *d,
                            struct str *out)
{
    cleanup_free const struct allocation **list =
        xcalloc(node->n_allocations + 1, sizeof *list);
    size_t n = 0;
    for (size_t i = 0; i < node->n_allocations; i++)
        if (has_card(node->allocations[i], d->id))
            list[n++] = node->allocations[i];
    str_add(out, "<h2>Who has it</h2>\n");
    pods_table_write(r, list, n, out);
}

static void write_drain(const struct node *node, const struct device *d,
                        enum card_state state, struct str *out)
{
    cleanup_str struct str command = STR_INIT(4096);
    char name[PCI_ADDR_TEXT_MAX];
    cleanup_free char *card = xasprintf("%s/%s", node->name,
                                        card_name(d, name));
    str_add(&command, state == CARD_DRAINED ? "biga undrain " : "biga drain ");
    shell_add_word(&command, card);
    if (state != CARD_DRAINED)
        str_add(&command, " --reason 'what is done to it'");
    str_add(out, state == CARD_DRAINED ? "<h2>Take it back</h2>\n"
                                       : "<h2>Take it out of service</h2>\n");
    html_add_command(out, str_text(&command));
}

/* By its id or its PCI address; NULL: the node has no such card. */
static const struct device *find_card(const struct node *node, const char *id,
                                      size_t *ret_card)
{
    char name[PCI_ADDR_TEXT_MAX];
    size_t first, n = view_count(node, DEVICE_CARD, &first);
    for (size_t i = 0; i < n; i++) {
        const struct device *d = topo_device(node->topo, first + i);
        *ret_card = i;
        if (strcmp(d->id, id) == 0 || strcmp(card_name(d, name), id) == 0)
            return d;
    }
    return NULL;
}

/* "NODE/CARD" as the history has it: by the PCI address. */
static char *card_object(const struct snapshot *s, const char *node,
                         const char *id)
{
    char name[PCI_ADDR_TEXT_MAX];
    int32_t i = snapshot_find(s, node, strlen(node));
    size_t card;
    const struct device *d =
        i == NODE_NONE ? NULL
                       : find_card(snapshot_node(s, (size_t)i), id, &card);
    return xasprintf("%s/%s", node, d ? card_name(d, name) : id);
}

void page_card(struct httpd_request *rq, void *ctx)
{
    static const char *const params[] = {"at", NULL};
    const char *id = httpd_arg(rq, 1);
    struct console_reply r;
    char name[PCI_ADDR_TEXT_MAX];
    size_t index, card = 0;
    if (!console_begin(&r, rq, ctx, CONSOLE_NODES, params))
        return;
    if (console_then_is_asked(&r)) {
        r.page.title = id;
        console_then_show(&r, HISTORY_CARD,
                          card_object(r.snapshot, httpd_arg(rq, 0), id));
        return;
    }
    const struct node *node = find_node(&r, httpd_arg(rq, 0), &index);
    const struct device *d = node ? find_card(node, id, &card) : NULL;
    if (node && !d) {
        console_miss(&r, "Node \"%.253s\" has no card \"%.63s\".", node->name,
                     id);
    } else if (node) {
        enum card_state state = card_state(node, card);
        write_path(r.snapshot, index, &r.out);
        str_add(&r.out, " / ");
        html_add_link(&r.out, "nodes", node->name, NULL, node->name);
        html_addf(&r.out, "</p>\n<h1>Card %s ", card_name(d, name));
        html_add_badge(&r.out, state_class(state), card_state_name(state));
        str_add(&r.out, "</h1>\n");
        write_card_facts(node, card, d, &r.out);
        write_card_pods(&r, node, d, &r.out);
        write_drain(node, d, state, &r.out);
        console_then_events(&r, HISTORY_CARD,
                            card_object(r.snapshot, node->name, d->id));
        return;
    }
    console_end(&r);
}
