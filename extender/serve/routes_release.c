#include "extender/serve/routes_private.h"

#include <errno.h>
#include <stdlib.h>

#include "extender/keep/writer.h"
#include "extender/pods/pending_demands.h"
#include "extender/serve/app.h"
#include "lib/base/jwrite.h"
#include "lib/base/mem.h"

static bool release_follow(struct waiting *release)
{
    const struct app *app = release->app;
    const struct writer_op *op = &release->op;
    metrics_count(app->listener.metrics, APP_RELEASES,
                  op->result == 0         ? "released"
                  : op->result == -ENOENT ? "unknown"
                                          : "error");
    if (op->result == 0 && app->demands)
        pending_demands_forget(app->demands, op->namespace, op->pod);
    return false;
}

static void release_answer(struct httpd_request *rq, struct waiting *release)
{
    int r = release->op.result;
    if (r < 0) {
        httpd_fail(rq, r == -EBUSY ? 409 : waiting_failure(release), "%s",
                   release->op.error.text);
        return;
    }
    struct str *out = httpd_reply(rq);
    str_add(out, "{\"released\":{");
    jwrite_text(out, "namespace", httpd_arg(rq, 0));
    jwrite_text(out, "name", httpd_arg(rq, 1));
    str_add(out, "}}\n");
}

static const struct waiting_kind releasing = {.follow = release_follow,
                                              .answer = release_answer};

void handle_release(struct httpd_request *rq, void *ctx)
{
    struct app *app = ctx;
    static const char *const no_params[] = {NULL};
    const char *namespace = httpd_arg(rq, 0), *pod = httpd_arg(rq, 1);
    cleanup_str struct str why = STR_INIT(4096);
    bool unfed;
    if (!httpd_query_only(rq, no_params))
        return;
    if (!pod_source_may_release(&app->source, namespace, pod, &unfed, &why)) {
        httpd_fail(rq, 409, "%s", str_text(&why));
        return;
    }
    struct waiting *release = xcalloc(1, sizeof *release);
    release->op = (struct writer_op){
        .kind = WRITER_RELEASE,
        .namespace = namespace,
        .pod = pod,
        .unfed = unfed,
        .out = STR_INIT(STR_MAX_DEFAULT),
    };
    waiting_post(release, &releasing, rq, app);
}
