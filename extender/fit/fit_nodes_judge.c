#include <stdio.h>
#include <string.h>

#include "extender/fit/fit_nodes_private.h"

/* The needs of one call, with resources by number. */
struct question {
    struct fit_nodes *r;
    const struct pod_needs *needs;
    uint64_t number;
    uint32_t resources[POD_TAKES_RESOURCES_MAX];
};

/* What keeps a pod off one node. */
struct judgement {
    enum fit_reason reason;
    const struct node_taint *taint; /* FIT_TAINT */
    bool too_many;                  /* FIT_RESOURCES: of pods, */
    uint32_t lacking;               /* bit i: of amount i */
};

static struct question ask(struct fit_nodes *r, const struct pod_needs *needs)
{
    struct question q = {.r = r, .needs = needs, .number = ++r->question};
    for (size_t i = 0; i < needs->takes.n_amounts; i++)
        q.resources[i] = fit_takes_find(&r->takes,
                                        needs->takes.amounts[i].resource);
    return q;
}

/* --- one node ----------------------------------------------------------- */

/* What is left of the resource of amount i; INT64_MAX: kube-scheduler looks
 * for devices instead. */
static int64_t left(const struct question *q, const struct fit_node *n,
                    size_t i)
{
    const struct fit_room *room = fit_nodes_find_room(n, q->resources[i]);
    if ((!room || room->has <= 0) && q->r->by_class[q->resources[i]])
        return INT64_MAX;
    return room ? (int64_t)((uint64_t)room->has - room->taken) : 0;
}

static struct judgement judge_rooms(const struct question *q,
                                    const struct fit_node *n)
{
    const struct pod_takes *takes = &q->needs->takes;
    struct judgement j = {.too_many = n->pods >= n->pods_has};
    for (size_t i = 0; i < takes->n_amounts; i++)
        if (takes->amounts[i].amount > left(q, n, i))
            j.lacking |= 1u << i;
    if (j.too_many || j.lacking)
        j.reason = FIT_RESOURCES;
    return j;
}

static bool has_port(const struct question *q, const struct fit_node *n)
{
    for (size_t i = 0; i < n->n_ports; i++)
        if (pod_takes_ports_clash(&n->ports[i]->takes, &q->needs->takes))
            return true;
    return false;
}

static struct judgement judge(const struct question *q, const char *name)
{
    static const enum fit_reason reasons[] = {
        [FIT_KIND_UNSCHEDULABLE] = FIT_UNSCHEDULABLE,
        [FIT_KIND_TAINT] = FIT_TAINT,
        [FIT_KIND_LABELS] = FIT_AFFINITY,
    };
    const struct node_taint *taint = NULL;
    const struct fit_node *n = fit_nodes_find(q->r, name);
    if (!n || !n->kind)
        return (struct judgement){.reason = FIT_NO_NODE};
    enum fit_kind_answer answer = fit_kind_judge(n->kind, q->number, q->needs,
                                                 n->name, &taint);
    if (answer != FIT_KIND_OK)
        return (struct judgement){.reason = reasons[answer], .taint = taint};
    if (q->needs->takes.n_ports && has_port(q, n))
        return (struct judgement){.reason = FIT_PORTS};
    return judge_rooms(q, n);
}

/* --- in words ----------------------------------------------------------- */

static const char *const words[] = {
    [FIT_NO_NODE] = "node(s) were not there",
    [FIT_UNSCHEDULABLE] = "node(s) were unschedulable",
    [FIT_TAINT] = "node(s) had untolerated taint(s)",
    [FIT_AFFINITY] = "node(s) didn't match Pod's node affinity/selector",
    [FIT_PORTS] = "node(s) didn't have free ports for the requested pod ports",
};
static const char too_many_pods[] = "Too many pods";

static void write_taint(const struct node_taint *t, struct str *out)
{
    str_addf(out, "%s {%s: %s}", words[FIT_TAINT], t->key, t->value);
}

static void write_lacking(const struct question *q, size_t i, struct str *out)
{
    str_addf(out, "Insufficient %s", q->needs->takes.amounts[i].resource);
}

static void write_judgement(const struct question *q, const struct judgement *j,
                            struct str *out)
{
    if (j->reason == FIT_TAINT) {
        write_taint(j->taint, out);
    } else if (j->reason == FIT_RESOURCES) {
        if (j->too_many)
            str_add(out, too_many_pods);
        for (size_t i = 0; i < q->needs->takes.n_amounts; i++) {
            if (!(j->lacking & 1u << i))
                continue;
            str_add(out, out->size ? ", " : "");
            write_lacking(q, i, out);
        }
    } else if (j->reason != FIT_OK) {
        str_add(out, words[j->reason]);
    }
}

static void write_verdict(const struct question *q, const struct judgement *j,
                          struct fit_verdict *ret_verdict)
{
    cleanup_str struct str text = STR_INIT(STR_MAX_DEFAULT);
    write_judgement(q, j, &text);
    ret_verdict->reason = j->reason;
    (void)snprintf(ret_verdict->text, sizeof ret_verdict->text, "%s",
                   str_text(&text));
}

enum fit_reason fit_nodes_judge(struct fit_nodes *r,
                                const struct pod_needs *needs, const char *node,
                                struct fit_verdict *ret_verdict)
{
    return fit_nodes_judge_without(r, needs, node, &(struct fit_without){0},
                                   ret_verdict);
}

enum fit_reason fit_nodes_judge_without(struct fit_nodes *r,
                                        const struct pod_needs *needs,
                                        const char *node,
                                        const struct fit_without *without,
                                        struct fit_verdict *ret_verdict)
{
    hold_lock(&r->lock);
    struct fit_node *n = fit_nodes_find(r, node);
    for (size_t i = 0; i < without->n && n; i++)
        fit_nodes_lift(r, n, without->uids[i]);
    struct question q = ask(r, needs);
    struct judgement j = judge(&q, node);
    for (size_t i = 0; i < without->n && n; i++)
        fit_nodes_lay_back(r, n, without->uids[i]);
    if (ret_verdict)
        write_verdict(&q, &j, ret_verdict);
    return j.reason;
}

size_t fit_nodes_judge_all(struct fit_nodes *r, const struct pod_needs *needs,
                           const char *const *nodes, size_t n,
                           enum fit_reason *ret_reasons)
{
    size_t n_ok = 0;
    hold_lock(&r->lock);
    struct question q = ask(r, needs);
    for (size_t i = 0; i < n; i++) {
        ret_reasons[i] = judge(&q, nodes[i]).reason;
        n_ok += ret_reasons[i] == FIT_OK;
    }
    return n_ok;
}

int64_t fit_nodes_room(struct fit_nodes *r, const struct pod_needs *needs,
                       const char *node)
{
    const struct pod_takes *takes = &needs->takes;
    hold_lock(&r->lock);
    struct question q = ask(r, needs);
    if (judge(&q, node).reason != FIT_OK)
        return 0;
    const struct fit_node *n = fit_nodes_find(r, node);
    int64_t room = n->pods_has - n->pods;
    for (size_t i = 0; i < takes->n_amounts; i++) {
        int64_t times = left(&q, n, i) / takes->amounts[i].amount;
        room = times < room ? times : room;
    }
    return takes->n_ports ? 1 : room;
}

/* --- counted ------------------------------------------------------------ */

struct count {
    enum fit_reason reason;
    const struct node_taint *taint; /* FIT_TAINT */
    size_t amount; /* FIT_RESOURCES: number, or that behind the last: pods */
    size_t n;
};

struct tally {
    struct count counts[FIT_TALLY_MAX];
    size_t n, n_ok;
    bool more;
};

static bool is_same(const struct count *a, const struct count *b)
{
    return a->reason == b->reason && a->amount == b->amount &&
           (a->taint == b->taint ||
            (strcmp(a->taint->key, b->taint->key) == 0 &&
             strcmp(a->taint->value, b->taint->value) == 0));
}

static void count(struct tally *t, struct count what)
{
    size_t i = 0;
    while (i < t->n && !is_same(&t->counts[i], &what))
        i++;
    if (i == FIT_TALLY_MAX) {
        t->more = true;
        return;
    }
    if (i == t->n)
        t->counts[t->n++] = what;
    t->counts[i].n++;
}

static void count_judgement(struct tally *t, const struct question *q,
                            const struct judgement *j)
{
    size_t n_amounts = q->needs->takes.n_amounts;
    if (j->reason == FIT_OK) {
        t->n_ok++;
        return;
    }
    if (j->reason != FIT_RESOURCES) {
        count(t, (struct count){.reason = j->reason,
                                .taint = j->reason == FIT_TAINT ? j->taint
                                                                : NULL});
        return;
    }
    if (j->too_many)
        count(t, (struct count){.reason = FIT_RESOURCES, .amount = n_amounts});
    for (size_t i = 0; i < n_amounts; i++)
        if (j->lacking & 1u << i)
            count(t, (struct count){.reason = FIT_RESOURCES, .amount = i});
}

/* The most frequent first. */
static int compare_count(const void *a, const void *b)
{
    const struct count *x = a, *y = b;
    if (x->n != y->n)
        return x->n < y->n ? 1 : -1;
    if (x->reason != y->reason)
        return x->reason < y->reason ? -1 : 1;
    if (x->taint != y->taint) {
        int order = strcmp(x->taint->key, y->taint->key);
        return order ? order : strcmp(x->taint->value, y->taint->value);
    }
    return x->amount < y->amount ? -1 : x->amount > y->amount;
}

static void write_count(const struct question *q, const struct count *c,
                        struct str *out)
{
    str_addf(out, "%zu ", c->n);
    if (c->reason == FIT_TAINT)
        write_taint(c->taint, out);
    else if (c->reason != FIT_RESOURCES)
        str_add(out, words[c->reason]);
    else if (c->amount == q->needs->takes.n_amounts)
        str_add(out, too_many_pods);
    else
        write_lacking(q, c->amount, out);
}

void fit_nodes_explain(struct fit_nodes *r, const struct pod_needs *needs,
                       const char *const *nodes, size_t n, struct str *out)
{
    struct tally t = {0};
    hold_lock(&r->lock);
    struct question q = ask(r, needs);
    for (size_t i = 0; i < n; i++) {
        struct judgement j = judge(&q, nodes[i]);
        count_judgement(&t, &q, &j);
    }
    qsort(t.counts, t.n, sizeof *t.counts, compare_count);
    str_addf(out, "%zu/%zu nodes are available", t.n_ok, n);
    for (size_t i = 0; i < t.n; i++) {
        str_add(out, i ? ", " : ": ");
        write_count(&q, &t.counts[i], out);
    }
    str_add(out, t.more ? ", and more" : "");
}
