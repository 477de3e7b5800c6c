#include "extender/console/past.h"

#include <stdlib.h>

#include "extender/console/html.h"
#include "extender/history/history_view.h"
#include "lib/base/mem.h"
#include "lib/io/rfc3339.h"

const char *past_text(const cJSON *object, const char *key)
{
    const char *text =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
    return text ? text : "";
}

const cJSON *past_list(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

void past_write_banner(struct console_then *t)
{
    char time[RFC3339_SIZE];
    rfc3339_format(t->ms, time);
    html_addf(&t->reply.out,
              "<p class=\"then\">As it was at <time datetime=\"%s\">%s"
              "</time>. <a href=\"%s\">Now</a></p>\n",
              time, time, httpd_path(t->reply.rq));
}

int past_each_node(struct history_reader *r, int64_t ms, past_node_f *visit,
                   void *ctx, struct error *err)
{
    cleanup_free char *after = NULL;
    for (bool more = true; more;) {
        cleanup_str struct str text = STR_INIT(STR_MAX_DEFAULT);
        cleanup_with(json) cJSON *json = NULL;
        const cJSON *item;
        int e = history_view_topology(r, ms, after, HISTORY_VIEW_NODES, &text,
                                      err);
        if (e == 0)
            e = json_parse(str_text(&text), text.size, &json, err);
        if (e < 0)
            return e;
        cJSON_ArrayForEach(item, past_list(json, "items")) visit(ctx, item);
        more = *past_text(json, "continue") != '\0';
        free(after);
        after = xstrdup(past_text(json, "continue"));
    }
    return 0;
}
