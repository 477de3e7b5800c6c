/* embedded - a source of pods (pod_source.h) for a machine or a rack without
 * Kubernetes: pods are applied to this extender, kept in its store, placed by
 * its runner, and run by the nodes, which poll for them and report. */
#ifndef BIGA_EXTENDER_RUN_EMBEDDED_H
#define BIGA_EXTENDER_RUN_EMBEDDED_H

#include "extender/jobs/ended_jobs.h"
#include "extender/pods/node_report.h"
#include "extender/pods/pod_source.h"
#include "extender/run/node_poll.h"
#include "extender/run/pod_store.h"
#include "extender/run/runner.h"
#include "lib/base/error.h"
#include "lib/base/str.h"

struct embedded {
    struct pod_store store; /* all but its pods and reports are set before
                             * embedded_start() */
    struct ended_jobs *ended;
    struct runner *runner;
    struct node_poll *node_poll;
};

/* With store.applied, for the writer to load. */
struct embedded *embedded_create(const struct demand_config *demand);
/* Its threads. */
int embedded_start(struct embedded *e, struct error *err);
/* Nodes that wait are answered: before the listeners are stopped. */
void embedded_quiesce(struct embedded *e); /* NULL allowed */
/* The threads end; pods go on.  Before the writer is stopped. */
void embedded_stop(struct embedded *e); /* NULL allowed */
/* After the writer, which tells it of changes. */
void embedded_destroy(struct embedded *e); /* NULL allowed */

/* The node asks for its pods. */
void embedded_asked(struct embedded *e, const char *node);
/* What it asks, as in its URL; NULL: is not there. */
struct node_ask {
    const char *node;
    const char *version; /* of its pods, the last that it was told */
    const char *from;    /* the page that begins with this uid */
    const char *kept;    /* uids of pods that it has, with commas */
};
/* The answer, a JSON object.  False when one of its pods has not been written
 * down as told yet: WRITER_FED with `*ret_newest` has to come first. */
bool embedded_answer(struct embedded *e, const struct node_ask *ask,
                     struct str *out, uint64_t *ret_newest);
/* The node says how they fare. */
void embedded_heard(struct embedded *e, const char *node,
                    const struct node_report *report);
/* Must the node report all it runs?  After damage to the state it gets nothing
 * new until it has. */
bool embedded_doubts(const struct embedded *e, const char *node);

struct pod_source embedded_source(struct embedded *e);
/* Of such a source alone. */
struct embedded *embedded_of(const struct pod_source *source);

#endif
