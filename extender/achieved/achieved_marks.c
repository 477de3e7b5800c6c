#include "extender/achieved/achieved_marks.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/strmap.h"

struct mark {
    char uid[DEMAND_UID_MAX + 1];
    uint64_t text; /* its hash */
};

struct seen_node {
    struct achieved_report *report; /* whose node is its key */
    uint64_t round;
    struct mark *marks;
    size_t n_marks;
};

struct achieved_marks {
    struct achieved_told told;
    struct snapshot *last; /* keeps the nodes that were looked at */
    struct strmap nodes;
    uint64_t round;
};

struct achieved_marks *achieved_marks_create(const struct achieved_told *told)
{
    struct achieved_marks *m = xcalloc(1, sizeof *m);
    m->told = *told;
    return m;
}

static void seen_free(void *node)
{
    struct seen_node *x = node;
    achieved_report_unref(x->report);
    free(x->marks);
    free(x);
}

void achieved_marks_destroy(struct achieved_marks *m)
{
    if (!m)
        return;
    strmap_fini_with(&m->nodes, seen_free);
    snapshot_unref(m->last);
    free(m);
}

static const struct node *node_of(const struct snapshot *s, const char *name)
{
    int32_t index = s ? snapshot_find(s, name, strlen(name)) : NODE_NONE;
    return index == NODE_NONE ? NULL : snapshot_node(s, (size_t)index);
}

static const struct mark *find_mark(const struct seen_node *x, const char *uid)
{
    for (size_t i = 0; i < x->n_marks; i++)
        if (strcmp(x->marks[i].uid, uid) == 0)
            return &x->marks[i];
    return NULL;
}

static void look_at_pod(const struct achieved_marks *m,
                        const struct snapshot *s, const struct seen_node *old,
                        const struct allocation *a, bool all,
                        struct seen_node *now)
{
    cleanup_str struct str why = STR_INIT(65536);
    const struct mark *mark = find_mark(old, a->demand.uid);
    struct achieved x;
    achieved_judge(s, a, now->report, &x, &why);
    if (mark && x.state == ACHIEVED_KEPT)
        m->told.back(m->told.ctx, a);
    if (x.state != ACHIEVED_LOST)
        return;
    uint64_t text = hash_bytes(str_text(&why), why.size);
    bool again = mark && mark->text == text;
    struct mark *to = &now->marks[now->n_marks++];
    memcpy(to->uid, a->demand.uid, sizeof to->uid);
    to->text = text;
    if (!again || all)
        m->told.lost(m->told.ctx, a, str_text(&why), again);
}

/* A new one in the place of the old. */
static struct seen_node *look_at_node(const struct achieved_marks *m,
                                      const struct snapshot *s,
                                      const struct node *node,
                                      const struct seen_node *old,
                                      struct achieved_report *report, bool all)
{
    static const struct seen_node none;
    struct seen_node *now = xcalloc(1, sizeof *now);
    size_t n = node ? node->n_allocations : 0;
    now->report = achieved_report_ref(report);
    now->marks = xcalloc(n + 1, sizeof *now->marks);
    for (size_t i = 0; i < n; i++)
        if (!node->allocations[i]->held)
            look_at_pod(m, s, old ? old : &none, node->allocations[i], all,
                        now);
    return now;
}

static void drop_unseen(struct achieved_marks *m)
{
    size_t n = 0, pos = 0;
    cleanup_free struct seen_node **gone = xcalloc(m->nodes.n + 1,
                                                   sizeof *gone);
    for (struct seen_node *x; (x = strmap_next(&m->nodes, &pos));)
        if (x->round != m->round)
            gone[n++] = x;
    for (size_t i = 0; i < n; i++) {
        (void)strmap_remove(&m->nodes, gone[i]->report->node);
        seen_free(gone[i]);
    }
}

void achieved_marks_look(struct achieved_marks *m, struct snapshot *s,
                         struct achieved_report *const *reports, size_t n,
                         bool all)
{
    m->round++;
    for (size_t i = 0; i < n; i++) {
        const char *name = reports[i]->node;
        const struct node *node = node_of(s, name);
        struct seen_node *x = strmap_get(&m->nodes, name);
        if (all || !x || x->report != reports[i] ||
            node != node_of(m->last, name)) {
            struct seen_node *now = look_at_node(m, s, node, x, reports[i],
                                                 all);
            if (x)
                (void)strmap_remove(&m->nodes, name);
            if (x)
                seen_free(x);
            (void)strmap_put(&m->nodes, now->report->node, now);
            x = now;
        }
        x->round = m->round;
    }
    drop_unseen(m);
    struct snapshot *last = m->last;
    m->last = snapshot_ref(s);
    snapshot_unref(last);
}
