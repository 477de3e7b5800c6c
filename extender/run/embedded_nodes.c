/* What a node is told of its pods; what it says: how they fare and, after damage
 * to the state, what is there that nobody remembers. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "extender/pods/applied.h"
#include "extender/pods/node_pods.h"
#include "extender/pods/node_report.h"
#include "extender/run/embedded.h"
#include "extender/state/snapshot.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"

/* --- its pods ------------------------------------------------------------- */

/* What is said of pods that have a place on the node; others are not its own,
 * or it does not know yet that they are not any more. */
static void take_pods(const struct pod_store *store, const char *node,
                      const struct node_report *report)
{
    cleanup_with(pod_set) struct pod_set *set = applied_get(store->applied);
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(store->writer);
    cleanup_free struct pod_report *reports = xcalloc(report->n_pods + 1,
                                                      sizeof *reports);
    size_t n = 0;
    for (size_t i = 0; i < report->n_pods; i++) {
        const struct node_report_pod *p = &report->pods[i];
        const struct applied_pod *pod = pod_set_find_uid(set, p->uid);
        const struct allocation *a = alloc_index_find_uid(s->allocations,
                                                          p->uid);
        if (!pod || !a || strcmp(a->node, node) != 0)
            continue;
        node_reports_put(store->reports, p->uid, node, p->status);
        reports[n].uid = p->uid;
        reports[n++].status = runner_status(pod, p->status);
    }
    applied_set_statuses(store->applied, reports, n);
    for (size_t i = 0; i < n; i++)
        pod_status_unref(reports[i].status);
}

/* --- after damage --------------------------------------------------------- */

/* A pod that is there, and has no place here, was given one that we have lost.
 * Its node ends it, and says when it has. */
static void note_strangers(const struct pod_store *store, const char *node,
                           const struct node_report *report)
{
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(store->writer);
    for (size_t i = 0; i < report->n_pods; i++) {
        const struct node_report_pod *p = &report->pods[i];
        const struct allocation *a = alloc_index_find_uid(s->allocations,
                                                          p->uid);
        bool known = a && strcmp(a->node, node) == 0;
        node_reports_stranger(store->reports, node, p->uid,
                              !known && p->status->state != POD_STATE_GONE);
    }
}

struct word {
    struct writer_op op;
    char *node;
};

/* A word that could not be written down is said again when the node is heard
 * next. */
static void word_done(struct writer_op *op)
{
    struct word *word = op->ctx;
    free(word->node);
    free(word);
}

/* When the node has told of all there is, and nothing is there any more that
 * is unknown here, it is trusted. */
static void end_doubt(const struct embedded *e, const char *node)
{
    if (!embedded_doubts(e, node) || !node_reports_all(e->store.reports, node))
        return;
    struct word *word = xcalloc(1, sizeof *word);
    word->node = xstrdup(node);
    word->op = (struct writer_op){.kind = WRITER_TRUST,
                                  .node = word->node,
                                  .owner = word->node,
                                  .done = word_done,
                                  .ctx = word};
    writer_post(e->store.writer, &word->op);
}

/* Also of a node that is stale: it will be doubtful when it is heard. */
static void hear_doubt(const struct embedded *e, const char *node,
                       const struct node_report *report)
{
    if (!writer_in_doubt(e->store.writer))
        return;
    note_strangers(&e->store, node, report);
    if (report->whole)
        node_reports_whole(e->store.reports, node);
    end_doubt(e, node);
}

bool embedded_doubts(const struct embedded *e, const char *node)
{
    cleanup_with(snapshot) struct snapshot *s =
        writer_snapshot(e->store.writer);
    int32_t index = snapshot_find(s, node, strlen(node));
    return index != NODE_NONE &&
           snapshot_node(s, (size_t)index)->status == NODE_DOUBTFUL;
}

/* --- from the listener ---------------------------------------------------- */

void embedded_asked(struct embedded *e, const char *node)
{
    node_reports_asked(e->store.reports, node, clock_ms());
    end_doubt(e, node);
}

bool embedded_answer(struct embedded *e, const struct node_ask *ask,
                     struct str *out, uint64_t *ret_newest)
{
    char next[APPLIED_UID_SIZE];
    /* before the snapshot: what was given back since is not in that one */
    uint64_t fed = writer_fed(e->store.writer, ask->node);
    cleanup_with(pod_set) struct pod_set *set = applied_get(e->store.applied);
    cleanup_with(snapshot) struct snapshot *s =
        writer_snapshot(e->store.writer);
    uint64_t newest = node_pods_newest(set, s, ask->node);
    if (newest > fed) {
        *ret_newest = newest;
        return false;
    }
    str_addf(out, "{\"version\":%" PRIu64,
             node_poll_version(e->node_poll, set, s, ask->node));
    /* what it said to an extender before this start is not known any more */
    if (!ask->version ||
        !node_poll_knows(e->node_poll, strtoull(ask->version, NULL, 10)) ||
        embedded_doubts(e, ask->node))
        str_add(out, ",\"resend\":true");
    str_add(out, ",\"items\":");
    node_pods_write(set, s, ask->node, ask->from ? ask->from : "", out, next);
    if (*next)
        str_addf(out, ",\"next\":\"%s\"", next);
    str_add(out, ",\"kept\":");
    node_pods_write_kept(set, ask->kept ? ask->kept : "", out);
    str_add(out, "}\n");
    return true;
}

void embedded_heard(struct embedded *e, const char *node,
                    const struct node_report *report)
{
    node_reports_places(e->store.reports, node, report);
    take_pods(&e->store, node, report);
    hear_doubt(e, node, report);
    runner_wake(e->runner);
}
