/* slicewatch - what the API server tells of one node's slices as it happens,
 * so that what others do to them is noticed at once and not at the next
 * check.  One thread, which lists and watches; where that is forbidden, or
 * the server is away, nothing is noticed, and the checks remain. */
#ifndef BIGA_ADVERTISER_PUBLISH_SLICEWATCH_H
#define BIGA_ADVERTISER_PUBLISH_SLICEWATCH_H

#include <stdbool.h>

#include "advertiser/publish/publish.h"
#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/kube/config.h"

struct slicewatch;
/* `kube` must outlive it; `node` is a DNS name. */
int slicewatch_start(const struct kube_config *kube, const char *node,
                     struct slicewatch **ret_watch, struct error *err);
void slicewatch_stop(struct slicewatch *w); /* NULL allowed */
DEFINE_CLEANUP(slicewatch, struct slicewatch *, slicewatch_stop)

/* Readable when there is something to take. */
int slicewatch_fd(const struct slicewatch *w);
/* The oldest notice that was not taken, for as long as no other is taken;
 * false when there is none.  One thread at a time. */
bool slicewatch_take(struct slicewatch *w, struct publish_notice *ret_notice);

#endif
