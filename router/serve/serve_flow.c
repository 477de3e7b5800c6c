/* A stream of the home's, read on a worker, to which something is added. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "lib/grpc/grpc.h"
#include "router/serve/serve_private.h"

enum { TURN_MS = 1000 }; /* a wait is ended by whoever has something */

struct flowing {
    struct serve_flow *flow;
    struct grpc_hub *hub;
    bool ended;
    int result;
};

static int visit(void *ctx, const void *message, size_t size)
{
    struct flowing *f = ctx;
    return f->flow->visit(f->flow->ctx, message, size);
}

static void ended(void *ctx, int code, const struct grpc_end *end,
                  const struct error *err)
{
    struct flowing *f = ctx;
    f->ended = true;
    f->result = code;
    f->flow->code = end->code > GRPC_OK  ? end->code
                    : code == -ECANCELED ? GRPC_CANCELLED
                    : code < 0           ? GRPC_UNAVAILABLE
                                         : GRPC_OK;
    (void)snprintf(f->flow->text, sizeof f->flow->text, "%s",
                   end->code > GRPC_OK ? end->message
                   : code < 0          ? err->text
                                       : "");
}

static void wake(void *ctx)
{
    grpc_hub_wake(ctx);
}

static void turn_until_end(struct flowing *f)
{
    struct serve_flow *flow = f->flow;
    while (!f->ended && !grpcd_call_cancelled(flow->call)) {
        if (flow->turn && flow->turn(flow->ctx) < 0)
            break;
        grpc_hub_turn(f->hub, TURN_MS);
    }
    if (f->ended)
        return;
    f->result = -ECANCELED;
    flow->code = GRPC_CANCELLED;
}

int serve_flow_run(struct serve *s, struct serve_flow *flow)
{
    struct flowing f = {.flow = flow, .hub = grpc_hub_create()};
    struct grpc_flow *stream = NULL;
    struct error err = {0};
    size_t size = 0;
    const char *request = grpcd_call_first(flow->call, &size);
    const struct grpc_config config = {.endpoint = s->home_url,
                                       .reply_max = TOLD_MAX};
    const struct grpc_flow_config what = {
        .method = grpcd_call_method(flow->call),
        .request = request ? request : "",
        .size = request ? size : 0,
        .visit = visit,
        .ended = ended,
        .ctx = &f};
    if (flow->begun)
        flow->begun(flow->ctx, f.hub);
    f.result = grpc_hub_open(f.hub, &config, &what, &stream, &err);
    if (f.result < 0) {
        flow->code = GRPC_UNAVAILABLE;
        (void)snprintf(flow->text, sizeof flow->text, "%s", err.text);
    } else {
        grpcd_call_on_cancel(flow->call, wake, f.hub);
        turn_until_end(&f);
        grpcd_call_on_cancel(flow->call, NULL, NULL);
    }
    if (flow->over)
        flow->over(flow->ctx);
    grpc_hub_destroy(f.hub);
    return f.result;
}
