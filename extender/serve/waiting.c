#include "extender/serve/waiting.h"

#include <errno.h>

/* On the writer's thread. */
static void waiting_done(struct writer_op *op)
{
    struct waiting *w = op->ctx;
    httpd_resume(w->rq);
}

void waiting_post(struct waiting *w, struct httpd_request *rq, struct app *app,
                  void (*finish)(struct httpd_request *rq, void *arg))
{
    w->rq = rq;
    w->app = app;
    w->op.done = waiting_done;
    w->op.ctx = w;
    httpd_then(rq, finish, w);
    httpd_suspend(rq);
    writer_post(app->writer, &w->op);
}

unsigned waiting_failure(const struct waiting *w)
{
    switch (w->op.result) {
    case -ENOENT:
        return 404;
    case -EEXIST:
        return 409;
    case -EAGAIN: /* of the API server, where it keeps things */
    case -ETIMEDOUT:
    case -ECONNREFUSED:
        return 503;
    case -EFBIG:
    case -ENOSPC:
        return 507;
    default:
        return 500;
    }
}
