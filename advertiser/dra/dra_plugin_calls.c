/* What the kubelet asks of the plugin. */
#include <string.h>

#include "advertiser/dra/dra_plugin_private.h"
#include "lib/io/clock.h"
#include "lib/io/failpoint.h"
#include "lib/io/log.h"

/* --- calls ---------------------------------------------------------------- */

static struct proto_bytes first(struct grpcd_call *call)
{
    struct proto_bytes b = {"", 0};
    const char *data = grpcd_call_first(call, &b.size);
    b.data = data ? data : "";
    return b;
}

/* One answer in the making. */
struct answer {
    struct dra_plugin *p;
    struct cdi_host host;
    bool shares;
    struct error passing; /* of the API server; code 0: none */
    struct str out;
};

/* Where the API server does not answer, others would wait as long, and in
 * vain. */
static void prepare_one(struct answer *a, const struct dra_ref *ref)
{
    const struct dra_record *record = NULL;
    struct error err = a->passing;
    int r = err.code ? error_wrap(&err, "ResourceClaim %s/%s: not looked up",
                                  ref->namespace, ref->name)
                     : dra_claims_prepare(a->p->claims, ref, &a->host, &record,
                                          &err);
    if (r < 0) {
        log_event(LOG_WARN, "claim-not-prepared", "namespace", ref->namespace,
                  "claim", ref->name, "uid", ref->uid, "error", err.text, NULL);
        if (kube_error_passes(r) && r != -EAGAIN && !a->passing.code)
            a->passing = err;
    }
    dra_write_prepared(ref->uid, record, r < 0 ? err.text : NULL, a->shares,
                       &a->out);
}

static void unprepare_one(struct answer *a, const struct dra_ref *ref)
{
    struct error err = {0};
    int r = dra_claims_unprepare(a->p->claims, ref, &err);
    if (r < 0)
        log_event(LOG_ERROR, "claim-not-unprepared", "namespace",
                  ref->namespace, "claim", ref->name, "uid", ref->uid, "error",
                  err.text, NULL);
    dra_write_unprepared(ref->uid, r < 0 ? err.text : NULL, &a->out);
}

/* One that nobody waits for any more is not begun: the kubelet may have asked
 * for the contrary since. */
static void answer_all(struct answer *a, const struct dra_waiting *w,
                       const struct dra_ref *refs, size_t n)
{
    for (size_t i = 0; i < n && !grpcd_call_cancelled(w->call); i++)
        if (w->prepare)
            prepare_one(a, &refs[i]);
        else
            unprepare_one(a, &refs[i]);
    (void)failpoint(w->prepare ? "claim-before-answer"
                               : "claim-before-unanswer");
    if (a->out.overflow)
        grpcd_call_finish(w->call, GRPC_RESOURCE_EXHAUSTED,
                          "the answer is too large; ask for fewer claims");
    else
        grpcd_call_answer(w->call, str_text(&a->out), a->out.size);
}

void dra_plugin_answer(struct dra_plugin *p, const struct dra_waiting *w)
{
    struct answer a = {
        .p = p, .shares = w->shares, .out = STR_INIT(DRA_MESSAGE_MAX)};
    cleanup_free struct dra_ref *refs = NULL;
    cleanup_with(topo) struct topo *topo = NULL;
    struct error err = {0};
    size_t n = 0;
    int r = dra_read_refs(first(w->call), &refs, &n, &err);
    if (r < 0) {
        grpcd_call_finish(w->call,
                          r == -E2BIG ? GRPC_RESOURCE_EXHAUSTED
                                      : GRPC_INVALID_ARGUMENT,
                          err.text);
        return;
    }
    dra_plugin_host(p, &a.host, &topo);
    answer_all(&a, w, refs, n);
    str_fini(&a.out);
}

/* On the server's thread. */
static void enqueue(struct dra_plugin *p, struct grpcd_call *call, bool prepare,
                    bool shares)
{
    bool full;
    {
        hold_lock(&p->lock);
        full = p->n == DRA_QUEUE_MAX || p->stopping;
        if (!full)
            p->queue[(p->first + p->n++) % DRA_QUEUE_MAX] =
                (struct dra_waiting){call, prepare, shares};
        clock_wake_one(&p->wake);
    }
    if (full)
        grpcd_call_finish(call, GRPC_RESOURCE_EXHAUSTED,
                          "too many calls wait; try again");
}

static void on_prepare(void *ctx, struct grpcd_call *call)
{
    enqueue(ctx, call, true, true);
}

static void on_prepare_beta(void *ctx, struct grpcd_call *call)
{
    enqueue(ctx, call, true, false);
}

static void on_unprepare(void *ctx, struct grpcd_call *call)
{
    enqueue(ctx, call, false, false);
}

/* --- registration --------------------------------------------------------- */

/* The kubelet takes the first that it knows. */
static const char *const versions[] = {
    "v1.DRAPlugin",
    "v1beta1.DRAPlugin",
    "v1.DRAResourceHealth",
    "v1alpha1.DRAResourceHealth",
    NULL,
};

static void on_info(void *ctx, struct grpcd_call *call)
{
    struct dra_plugin *p = ctx;
    cleanup_str struct str out = STR_INIT(4096);
    dra_write_info(DRA_DRIVER, p->path, versions, &out);
    grpcd_call_answer(call, str_text(&out), out.size);
}

static void on_registered(void *ctx, struct grpcd_call *call)
{
    struct error why = {0}, err = {0};
    bool registered = false;
    (void)ctx;
    if (dra_read_registered(first(call), &registered, &why, &err) < 0) {
        grpcd_call_finish(call, GRPC_INVALID_ARGUMENT, err.text);
        return;
    }
    if (registered)
        log_event(LOG_INFO, "plugin-registered", "driver", DRA_DRIVER, NULL);
    else
        log_event(LOG_ERROR, "plugin-not-registered", "driver", DRA_DRIVER,
                  "error", why.text, NULL);
    grpcd_call_answer(call, "", 0);
}

/* --- which call is what --------------------------------------------------- */

#define KUBELET_API "/k8s.io.kubelet.pkg.apis.dra."

static const struct {
    const char *method;
    enum grpcd_how how;
    grpcd_handler_f *handle;
} methods[] = {
    {"/pluginregistration.Registration/GetInfo", GRPCD_HERE, on_info},
    {"/pluginregistration.Registration/NotifyRegistrationStatus", GRPCD_HERE,
     on_registered},
    {KUBELET_API "v1.DRAPlugin/NodePrepareResources", GRPCD_HERE, on_prepare},
    {KUBELET_API "v1.DRAPlugin/NodeUnprepareResources", GRPCD_HERE,
     on_unprepare},
    {KUBELET_API "v1beta1.DRAPlugin/NodePrepareResources", GRPCD_HERE,
     on_prepare_beta},
    {KUBELET_API "v1beta1.DRAPlugin/NodeUnprepareResources", GRPCD_HERE,
     on_unprepare},
    {"/v1.DRAResourceHealth/NodeWatchResources", GRPCD_LONG, dra_watch_serve},
    {"/v1alpha1.DRAResourceHealth/NodeWatchResources", GRPCD_LONG,
     dra_watch_serve},
};

/* Both sockets answer to all: which one a kubelet asks is its own choice. */
void dra_plugin_route(void *ctx, const struct grpcd_call *call,
                      struct grpcd_route *ret_route)
{
    struct dra_plugin *p = ctx;
    const char *method = grpcd_call_method(call);
    memset(ret_route, 0, sizeof *ret_route);
    ret_route->how = GRPCD_HERE;
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        if (strcmp(methods[i].method, method) != 0)
            continue;
        ret_route->how = methods[i].how;
        ret_route->handle = methods[i].handle;
        ret_route->ctx = p;
        if (methods[i].how == GRPCD_LONG)
            ret_route->ctx = p->watch;
    }
}
