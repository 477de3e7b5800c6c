/* history_view - what the history answers, as JSON. */
#ifndef BIGA_EXTENDER_HISTORY_HISTORY_VIEW_H
#define BIGA_EXTENDER_HISTORY_HISTORY_VIEW_H

#include <stdint.h>

#include "extender/history/history_read.h"
#include "lib/base/str.h"

enum {
    HISTORY_VIEW_EVENTS = 10,  /* before and after the moment */
    HISTORY_VIEW_NODES = 1000, /* of one page */
};

/* What the object was at `ms`, and the events around that: an object with
 * "kind", its name, "at", "oldest" (event that is remembered), "events" and
 *   node  "status", "since", "cards": [{"id","state","why","model","pods":
 *         ["NS/NAME"]}], "pods": [{"namespace","name","role","job","pair",
 *         "node","cards","gpus","nics","numa","relation","since","until"}]
 *   card  that card's members, its node's "status", "pods" as above
 *   job   "pods", in the order of pairs
 *   pod   "place" as one of "pods", or null; "refused": the event, or null
 * -ENOENT, with what was perhaps meant: nothing is remembered of it. */
int history_view_object(struct history_reader *r, enum history_kind kind,
                        const char *object, int64_t ms, struct str *out,
                        struct error *err);

/* All nodes that there were at `ms`, from the first behind `after` (NULL: all)
 * on, at most `limit`: {"at","oldest","items":[{"node","status","since",
 * "cards","pods"}],"continue"}. */
int history_view_topology(struct history_reader *r, int64_t ms,
                          const char *after, size_t limit, struct str *out,
                          struct error *err);

#endif
