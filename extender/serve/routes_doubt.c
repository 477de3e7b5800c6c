#include "extender/serve/routes_doubt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "extender/keep/writer.h"
#include "extender/run/embedded.h"
#include "extender/serve/app.h"
#include "extender/serve/routes_private.h"
#include "extender/state/snapshot.h"
#include "lib/base/mem.h"

/* --- by an operator ------------------------------------------------------- */

static void trust_finish(struct httpd_request *rq, void *arg)
{
    struct waiting *trust = arg;
    const struct writer_op *op = &trust->op;
    if (op->result < 0) {
        httpd_fail(rq, waiting_failure(trust), "%s", op->error.text);
    } else {
        str_add(httpd_reply(rq), "{\"trusted\":");
        str_add_json(httpd_reply(rq), op->node ? op->node : "*");
        str_add(httpd_reply(rq), "}\n");
    }
    free(trust);
}

void handle_trust(struct httpd_request *rq, void *ctx)
{
    static const char *const no_params[] = {NULL};
    if (!httpd_query_only(rq, no_params))
        return;
    const char *node = httpd_arg(rq, 0);
    struct waiting *trust = xcalloc(1, sizeof *trust);
    trust->op = (struct writer_op){.kind = WRITER_TRUST,
                                   .node = *node ? node : NULL};
    waiting_post(trust, rq, ctx, trust_finish);
}

/* --- by themselves -------------------------------------------------------- */

bool doubt_wants(struct app *app, const char *node)
{
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(app->writer);
    int32_t index = snapshot_find(s, node, strlen(node));
    return index != NODE_NONE &&
           snapshot_node(s, (size_t)index)->status == NODE_DOUBTFUL;
}

/* A pod that is there, and has no place here, was given one that we have lost.
 * Its node ends it, and says when it has. */
static void note_strangers(struct app *app, const char *node,
                           const struct node_report *status)
{
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(app->writer);
    for (size_t i = 0; i < status->n_pods; i++) {
        const struct node_report_pod *p = &status->pods[i];
        const struct allocation *a = alloc_index_find_uid(s->allocations,
                                                          p->uid);
        bool known = a && strcmp(a->node, node) == 0;
        node_reports_stranger(embedded_of(&app->source)->store.reports, node,
                              p->uid,
                              !known && p->status->state != APPLIED_GONE);
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

void doubt_end(struct app *app, const char *node)
{
    if (!doubt_wants(app, node) ||
        !node_reports_all(embedded_of(&app->source)->store.reports, node))
        return;
    struct word *word = xcalloc(1, sizeof *word);
    word->node = xstrdup(node);
    word->op = (struct writer_op){.kind = WRITER_TRUST,
                                  .node = word->node,
                                  .owner = word->node,
                                  .done = word_done,
                                  .ctx = word};
    writer_post(app->writer, &word->op);
}

/* Also of a node that is stale: it will be doubtful when it is heard. */
void doubt_heard(struct app *app, const char *node,
                 const struct node_report *status)
{
    if (!writer_in_doubt(app->writer))
        return;
    note_strangers(app, node, status);
    if (status->whole)
        node_reports_whole(embedded_of(&app->source)->store.reports, node);
    doubt_end(app, node);
}
