/* Events of many runtimes, on one thread. */
#include "advertiser/cri/cri_private.h"

#define METHOD "/runtime.v1.RuntimeService/GetContainerEvents"

struct cri_watch {
    struct grpc_hub *hub;
    struct grpc_flow *flow;
    const char *endpoint;
    struct cri_watcher who;
    struct error err; /* of a message that is no event */
};

static int take_event(void *ctx, const void *message, size_t size)
{
    struct cri_watch *w = ctx;
    struct cri_event event = {0};
    int r = cri_decode_event(message, size, &event, &w->err);
    if (r < 0)
        return r;
    /* one of a kind to come counts, and says nothing */
    return w->who.visit(w->who.ctx, r > 0 ? NULL : &event, size);
}

static void tell_end(void *ctx, int code, const struct grpc_end *end,
                     const struct error *err)
{
    struct cri_watch *w = ctx;
    struct error told = *err;
    if (code < 0 && w->err.code == -code)
        code = error_set(&told, -code, "%s: GetContainerEvents: %s",
                         w->endpoint, w->err.text);
    else
        code = cri_make_plain(end, code, &told);
    w->who.ended(w->who.ctx, code, &told);
    free(w);
}

int cri_watch_open(struct grpc_hub *hub, const struct grpc_config *config,
                   const struct cri_watcher *who, struct cri_watch **ret_watch,
                   struct error *err)
{
    struct cri_watch *w = xcalloc(1, sizeof *w);
    struct grpc_config own = *config;
    const struct grpc_flow_config what = {.method = METHOD,
                                          .request = "",
                                          .visit = take_event,
                                          .ended = tell_end,
                                          .ctx = w};
    own.reply_max = CRI_EVENT_MAX;
    w->hub = hub;
    w->endpoint = config->endpoint;
    w->who = *who;
    int r = grpc_hub_open(hub, &own, &what, &w->flow, err);
    if (r < 0) {
        free(w);
        return r;
    }
    *ret_watch = w;
    return 0;
}

void cri_watch_close(struct cri_watch *w)
{
    if (!w)
        return;
    grpc_hub_close(w->hub, w->flow);
    free(w);
}

bool cri_watch_stands(const struct cri_watch *w)
{
    return grpc_flow_stands(w->flow);
}
