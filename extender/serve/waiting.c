#include "extender/serve/waiting.h"

#include <errno.h>
#include <stdlib.h>

static void waiting_destroy(struct waiting *w)
{
    str_fini(&w->op.out);
    if (w->kind->destroy)
        w->kind->destroy(w);
    else
        free(w);
}

static void waiting_finish(struct httpd_request *rq, void *arg)
{
    struct waiting *w = arg;
    w->kind->answer(rq, w);
    waiting_destroy(w);
}

static void waiting_lost(void *arg)
{
    waiting_destroy(arg);
}

/* On the writer's thread. */
static void waiting_done(struct writer_op *op)
{
    struct waiting *w = op->ctx;
    if (!w->kind->follow || !w->kind->follow(w))
        httpd_resume(w->rq);
}

void waiting_begin(struct waiting *w, const struct waiting_kind *kind,
                   struct httpd_request *rq, struct app *app)
{
    w->rq = rq;
    w->app = app;
    w->kind = kind;
    httpd_then(rq, waiting_finish, w);
    httpd_or_else(rq, waiting_lost);
    httpd_suspend(rq);
}

void waiting_end(struct waiting *w)
{
    httpd_resume(w->rq);
}

void waiting_again(struct waiting *w)
{
    w->op.done = waiting_done;
    w->op.ctx = w;
    writer_post(w->app->writer, &w->op);
}

void waiting_post(struct waiting *w, const struct waiting_kind *kind,
                  struct httpd_request *rq, struct app *app)
{
    waiting_begin(w, kind, rq, app);
    waiting_again(w);
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
