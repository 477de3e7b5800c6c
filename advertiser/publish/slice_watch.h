/* slice_watch - what the API server tells of one node's slices as it happens,
 * so that what others do to them is noticed at once and not at the next
 * check.  One thread, which lists and watches; where that is forbidden, or
 * the server is away, nothing is noticed, and the checks remain. */
#ifndef BIGA_ADVERTISER_PUBLISH_SLICE_WATCH_H
#define BIGA_ADVERTISER_PUBLISH_SLICE_WATCH_H

#include <stdbool.h>

#include "advertiser/publish/publish.h"
#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/kube/config.h"

struct slice_watch;
/* `kube` must outlive it; `node` is a DNS name. */
int slice_watch_start(const struct kube_config *kube, const char *node,
                      struct slice_watch **ret_watch, struct error *err);
void slice_watch_stop(struct slice_watch *w); /* NULL allowed */
DEFINE_CLEANUP(slice_watch, struct slice_watch *, slice_watch_stop)

/* Readable when there is something to take. */
int slice_watch_fd(const struct slice_watch *w);
/* The oldest notice that was not taken, for as long as no other is taken;
 * false when there is none.  One thread at a time. */
bool slice_watch_take(struct slice_watch *w, struct publish_notice *ret_notice);

#endif
