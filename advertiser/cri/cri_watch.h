/* cri_watch - the events of a runtime, as they happen. */
#ifndef BIGA_ADVERTISER_CRI_CRI_WATCH_H
#define BIGA_ADVERTISER_CRI_CRI_WATCH_H

#include "advertiser/cri/cri_endpoint.h"

enum cri_event_kind {
    CRI_EVENT_CREATED = 0,
    CRI_EVENT_STARTED = 1,
    CRI_EVENT_STOPPED = 2,
    CRI_EVENT_DELETED = 3,
};
struct cri_event {
    enum cri_event_kind kind;
    char container_id[CRI_ID_MAX + 1], sandbox_id[CRI_ID_MAX + 1];
    char uid[CRI_UID_MAX]; /* of the pod; "" not said, or longer */
};
/* The events of many runtimes, on the thread of a hub. */
struct cri_watcher {
    /* NULL: of a kind that we do not know.  `size` is what it took on its way,
     * in bytes; nonzero ends it. */
    int (*visit)(void *ctx, const struct cri_event *event, size_t size);
    /* It has ended, and is freed after this: 0 by the runtime, -errno as calls
     * say it, -ENOSYS where the runtime has none: lists are to be polled then;
     * or what `visit` returned. */
    void (*ended)(void *ctx, int code, const struct error *err);
    void *ctx;
};
struct cri_watch;
/* What `config` points to must outlive it; its `reply_max` is not used. */
int cri_watch_open(struct grpc_hub *hub, const struct grpc_config *config,
                   const struct cri_watcher *who, struct cri_watch **ret_watch,
                   struct error *err);
/* Without a word to `ended`. */
void cri_watch_close(struct cri_watch *w);
/* As grpc_flow_stands(). */
bool cri_watch_stands(const struct cri_watch *w);

#endif
