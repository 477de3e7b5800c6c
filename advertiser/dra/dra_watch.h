/* dra_watch - how the cards fare, told to kubelets that ask
 * (NodeWatchResources): all of them at once, when one changes, and each
 * DRA_WATCH_AGAIN_MS, for a kubelet takes what is older than DRA_WATCH_OLD_S
 * for unknown.  Any thread. */
#ifndef BIGA_ADVERTISER_DRA_DRA_WATCH_H
#define BIGA_ADVERTISER_DRA_DRA_WATCH_H

#include "lib/grpcd/grpcd_call.h"
#include "model/topo/topo.h"

enum {
    DRA_WATCH_AGAIN_MS = 10000,
    DRA_WATCH_OLD_S = 30,
    DRA_WATCH_THREADS = 4, /* one for each kubelet that watches */
};

struct dra_watch;
struct dra_watch *dra_watch_create(void);
void dra_watch_destroy(struct dra_watch *w); /* NULL allowed; no call is left */

/* The cards are these now. */
void dra_watch_look(struct dra_watch *w, const struct topo *topo);
/* Nobody is told any more: calls end. */
void dra_watch_end(struct dra_watch *w);
/* A handler of GRPCD_LONG, `ctx` a struct dra_watch: until it is cancelled, or
 * all end. */
void dra_watch_serve(void *ctx, struct grpcd_call *call);

#endif
