/* Nodes and jobs as drawings. */
#include "extender/serve/routes_drawing.h"

#include <string.h>

#include "extender/serve/query.h"
#include "extender/view/job_drawing.h"
#include "extender/view/node_drawing.h"
#include "lib/base/json.h"

/* A browser that shows it as a page runs and loads nothing for it. */
static void set_type(struct httpd_request *rq)
{
    httpd_content_type(rq, DRAWING_TYPE);
    httpd_set_header(rq, "Content-Security-Policy", DRAWING_POLICY);
    httpd_set_header(rq, "X-Content-Type-Options", "nosniff");
}

void drawing_add_health(void *ctx, const struct node *node, size_t card,
                        struct str *text)
{
    struct app *app = ctx;
    cleanup_str struct str told = STR_INIT(1 << 20);
    cleanup_with(json) cJSON *json = NULL;
    struct error ignored;
    str_add(&told, "{}");
    pod_source_tell(&app->source, add_to_card, node, card, &told);
    if (json_parse(told.data, told.size, &json, &ignored) < 0)
        return;
    const char *reason = cJSON_GetStringValue(
        cJSON_GetObjectItemCaseSensitive(json, "healthReason"));
    str_add(text, reason ? reason : "");
}

void reply_node_drawing(struct httpd_request *rq, struct app *app,
                        const struct snapshot *s, const struct node *node)
{
    int32_t index = snapshot_find(s, node->name, strlen(node->name));
    const struct node_drawing drawing = {.snapshot = s,
                                         .index = (size_t)index,
                                         .form = DRAWING_FILE,
                                         .add_health = drawing_add_health,
                                         .ctx = app};
    if (query_is_current(rq, app, s))
        return;
    node_drawing_write(&drawing, httpd_reply(rq));
    set_type(rq);
}

void reply_job_drawing(struct httpd_request *rq, struct app *app,
                       const struct job_view *job)
{
    if (query_is_current(rq, app, job->snapshot))
        return;
    job_drawing_write(job, DRAWING_FILE, httpd_reply(rq));
    set_type(rq);
}
