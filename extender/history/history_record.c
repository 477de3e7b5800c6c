#include "extender/history/history_record.h"

#include <stdlib.h>
#include <string.h>

#include "extender/history/history_db.h"
#include "extender/history/history_record_private.h"
#include "lib/base/jwrite.h"

void record_event(struct record *r, const struct history_event *e)
{
    struct history_event now = *e;
    now.time_ms = r->ms;
    if (r->result == 0)
        r->result = history_book_event(r->book, &now, r->err);
}

/* --- places --------------------------------------------------------------- */

void record_pod_key(const struct demand *d,
                    char ret_key[HISTORY_OBJECT_MAX + 1])
{
    (void)snprintf(ret_key, HISTORY_OBJECT_MAX + 1, "%s/%s", d->namespace,
                   d->name);
}

/* The names of devices: their addresses, which people use, else their ids. */
static void write_devices(struct str *out, const char *key,
                          char (*ids)[TOPO_ID_MAX + 1],
                          char (*pci)[PCI_ADDR_TEXT_MAX], size_t n)
{
    if (n == 0)
        return;
    jwrite_array(out, key);
    for (size_t i = 0; i < n; i++)
        jwrite_text(out, NULL, pci && pci[i][0] ? pci[i] : ids[i]);
    jwrite_end_array(out);
}

static void write_place(const struct allocation *a, struct str *out)
{
    write_devices(out, "cards", a->cards, a->card_pci, a->n_cards);
    write_devices(out, "gpus", a->gpus, a->gpu_pci, a->n_gpus);
    write_devices(out, "nics", a->nics, a->nic_pci, a->n_nics);
    if (a->numa >= 0)
        jwrite_int(out, "numa", a->numa);
    jwrite_text(out, "relation", relation_name(a->relation));
}

static void add_names(struct str *out, const char *what,
                      char (*ids)[TOPO_ID_MAX + 1],
                      char (*pci)[PCI_ADDR_TEXT_MAX], size_t n)
{
    for (size_t i = 0; i < n; i++)
        str_addf(out, "%s%s", i ? ", " : what,
                 pci && pci[i][0] ? pci[i] : ids[i]);
}

static void tell_bound(struct record *r, const struct history_place *p,
                       const struct allocation *a)
{
    cleanup_str struct str text = STR_INIT(HISTORY_MESSAGE_MAX);
    add_names(&text, "card ", a->cards, a->card_pci, a->n_cards);
    add_names(&text, "; GPU ", a->gpus, a->gpu_pci, a->n_gpus);
    add_names(&text, "; NIC ", a->nics, a->nic_pci, a->n_nics);
    str_addf(&text, "%s%s", text.size ? "; " : "", relation_name(a->relation));
    record_event(r, &(struct history_event){.kind = HISTORY_POD,
                                            .reason = HISTORY_BOUND,
                                            .object = p->pod,
                                            .node = p->node,
                                            .job = p->job,
                                            .pair = p->pair,
                                            .message = str_text(&text)});
}

static void record_freed(struct record *r, const struct allocation *a,
                         const char *text)
{
    char pod[HISTORY_OBJECT_MAX + 1], job[HISTORY_OBJECT_MAX + 1];
    bool had = false;
    record_pod_key(&a->demand, pod);
    record_job_key(&a->demand, job);
    cleanup_free char *node = xstrdup(history_book_where(r->book, pod));
    if (r->result == 0)
        r->result = history_book_freed(r->book, pod, r->ms, &had, r->err);
    if (had)
        record_event(r,
                     &(struct history_event){.kind = HISTORY_POD,
                                             .reason = HISTORY_RELEASED,
                                             .object = pod,
                                             .node = node,
                                             .job = job,
                                             .pair = *job ? a->demand.pair : -1,
                                             .message = text});
}

static void record_placed(struct record *r, const struct allocation *a)
{
    char pod[HISTORY_OBJECT_MAX + 1], job[HISTORY_OBJECT_MAX + 1];
    cleanup_str struct str devices = STR_INIT(65536);
    const struct demand *d = &a->demand;
    record_pod_key(d, pod);
    record_job_key(d, job);
    write_place(a, &devices);
    const struct history_place p = {.pod = pod,
                                    .job = job,
                                    .node = a->node,
                                    .pair = *job ? d->pair : -1,
                                    .role = (uint8_t)d->role,
                                    .devices = str_text(&devices),
                                    .since_ms = r->ms};
    if (r->result < 0 || history_book_has(r->book, &p))
        return;
    record_freed(r, a, "it has another place now");
    tell_bound(r, &p, a);
    if (r->result == 0)
        r->result = history_book_placed(r->book, &p, r->err);
}

/* --- a change ------------------------------------------------------------- */

static void on_before(void *ctx, const struct allocation *before,
                      const struct allocation *after)
{
    struct record *r = ctx;
    const struct allocation *was = before && !before->held ? before : NULL;
    const struct allocation *is = after && !after->held ? after : NULL;
    record_job_touched(r, after ? after : before);
    if (was && (!is || strcmp(was->demand.uid, is->demand.uid) != 0))
        record_freed(r, was, "its place was given back");
}

static void on_after(void *ctx, const struct allocation *before,
                     const struct allocation *after)
{
    (void)before;
    if (after && !after->held)
        record_placed(ctx, after);
}

/* What it is has not changed, but perhaps what it has. */
static bool is_same(const struct node *was, const struct node *is)
{
    return was->topo == is->topo && was->status == is->status;
}

static void on_node(void *ctx, int32_t before, int32_t after)
{
    struct record *r = ctx;
    const struct node *was = before == NODE_NONE
                                 ? NULL
                                 : snapshot_node(r->before, (size_t)before);
    const struct node *is = after == NODE_NONE
                                ? NULL
                                : snapshot_node(r->after, (size_t)after);
    if (!is)
        record_node_gone(r, was->name);
    else if (!was || !is_same(was, is))
        record_node(r, is);
}

int history_record_change(struct history_book *b, const struct snapshot *before,
                          const struct snapshot *after, int64_t ms,
                          struct error *err)
{
    struct record r = {
        .book = b, .before = before, .after = after, .ms = ms, .err = err};
    snapshot_diff_nodes(before, after, on_node, &r);
    alloc_index_diff(before->allocations, after->allocations, on_before, &r);
    record_jobs_held(&r);
    alloc_index_diff(before->allocations, after->allocations, on_after, &r);
    record_jobs(&r);
    record_jobs_fini(&r);
    return r.result;
}

/* --- a start -------------------------------------------------------------- */

/* What the book has and the snapshot has not; texts are its own. */
struct missing {
    const struct snapshot *s;
    struct history_place *places;
    char **nodes;
    size_t n_places, places_cap, n_nodes, nodes_cap;
};

static void missing_fini(struct missing *m)
{
    for (size_t i = 0; i < m->n_places; i++) {
        free((char *)m->places[i].pod);
        free((char *)m->places[i].job);
        free((char *)m->places[i].node);
    }
    for (size_t i = 0; i < m->n_nodes; i++)
        free(m->nodes[i]);
    free(m->places);
    free(m->nodes);
}

static void look_for_pod(void *ctx, const struct history_place *p)
{
    struct missing *m = ctx;
    const char *slash = strchr(p->pod, '/');
    cleanup_free char *namespace = xstrndup(p->pod, (size_t)(slash - p->pod));
    const struct allocation *a = alloc_index_find(m->s->allocations, namespace,
                                                  slash + 1);
    if (a && !a->held)
        return;
    m->places = xgrow(m->places, m->n_places, &m->places_cap,
                      sizeof *m->places);
    m->places[m->n_places++] = (struct history_place){.pod = xstrdup(p->pod),
                                                      .job = xstrdup(p->job),
                                                      .node = xstrdup(p->node),
                                                      .pair = p->pair};
}

static void look_for_node(void *ctx, const struct history_node *n)
{
    struct missing *m = ctx;
    if (n->status == HISTORY_NODE_GONE_STATUS ||
        snapshot_find(m->s, n->node, strlen(n->node)) != NODE_NONE)
        return;
    m->nodes = xgrow(m->nodes, m->n_nodes, &m->nodes_cap, sizeof *m->nodes);
    m->nodes[m->n_nodes++] = xstrdup(n->node);
}

static void record_missing_place(struct record *r,
                                 const struct history_place *p)
{
    bool had;
    if (r->result == 0)
        r->result = history_book_freed(r->book, p->pod, r->ms, &had, r->err);
    record_event(r, &(struct history_event){
                        .kind = HISTORY_POD,
                        .reason = HISTORY_RELEASED,
                        .object = p->pod,
                        .node = p->node,
                        .job = p->job,
                        .pair = p->pair,
                        .message = "its place was given back before this "
                                   "start, or while nothing was recorded"});
}

static void record_missing(struct record *r)
{
    struct missing m = {.s = r->after};
    history_book_each_place(r->book, look_for_pod, &m);
    history_book_each_node(r->book, look_for_node, &m);
    for (size_t i = 0; i < m.n_places; i++)
        record_missing_place(r, &m.places[i]);
    for (size_t i = 0; i < m.n_nodes; i++)
        record_node_gone(r, m.nodes[i]);
    missing_fini(&m);
}

int history_record_all(struct history_book *b, const struct snapshot *s,
                       int64_t ms, struct error *err)
{
    struct record r = {.book = b, .after = s, .ms = ms, .err = err};
    size_t n;
    cleanup_free const struct allocation **all =
        alloc_index_list(s->allocations, &n);
    struct jobs_then *then = record_jobs_then(&r);
    record_missing(&r);
    for (size_t i = 0; i < s->n_nodes; i++)
        record_node(&r, snapshot_node(s, i));
    for (size_t i = 0; i < n; i++)
        record_job_touched(&r, all[i]);
    record_jobs_since(&r, then, record_job_held_since);
    for (size_t i = 0; i < n; i++)
        if (!all[i]->held)
            record_placed(&r, all[i]);
    record_jobs_since(&r, then, record_job_since);
    record_jobs_then_free(then);
    record_jobs_fini(&r);
    return r.result;
}
