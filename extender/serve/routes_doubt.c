#include <errno.h>
#include <stdlib.h>

#include "extender/keep/writer.h"
#include "extender/serve/app.h"
#include "extender/serve/routes_private.h"
#include "lib/base/mem.h"

static void trust_answer(struct httpd_request *rq, struct waiting *trust)
{
    const struct writer_op *op = &trust->op;
    if (op->result < 0) {
        httpd_fail(rq, waiting_failure(trust), "%s", op->error.text);
    } else {
        str_add(httpd_reply(rq), "{\"trusted\":");
        str_add_json(httpd_reply(rq), op->node ? op->node : "*");
        str_add(httpd_reply(rq), "}\n");
    }
}

static const struct waiting_kind trusting = {.answer = trust_answer};

void handle_trust(struct httpd_request *rq, void *ctx)
{
    static const char *const no_params[] = {NULL};
    if (!httpd_query_only(rq, no_params))
        return;
    const char *node = httpd_arg(rq, 0);
    struct waiting *trust = xcalloc(1, sizeof *trust);
    trust->op = (struct writer_op){.kind = WRITER_TRUST,
                                   .node = *node ? node : NULL};
    waiting_post(trust, &trusting, rq, ctx);
}
