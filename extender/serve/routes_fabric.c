#include "extender/serve/routes_private.h"

#include <inttypes.h>

#include "extender/app/fabric_files.h"
#include "extender/serve/app.h"
#include "extender/serve/query.h"
#include "extender/view/fabric_view.h"
#include "lib/base/jwrite.h"

static void write_domains(const struct snapshot *s, struct str *out)
{
    struct fabric_count unknown;
    cleanup_free struct fabric_count *counts = fabric_counts(s, &unknown);
    size_t n = fabric_n_domains(s->fabric);
    str_addf(out,
             ",\"unknown\":{\"nodes\":%" PRIu32 ",\"cards\":{\"total\":%" PRIu32
             ",\"idle\":%" PRIu32 "}},\"domains\":[",
             unknown.nodes, unknown.cards, unknown.idle);
    for (size_t i = 0; i < n; i++) {
        if (i)
            str_add(out, ",\n");
        fabric_view_domain(s->fabric, (int32_t)i, &counts[i], out);
    }
    str_add_c(out, ']');
}

static void write_items(const struct snapshot *s, const char *after,
                        size_t limit, struct str *out)
{
    struct fabric_walk walk;
    struct fabric_entry e;
    const char *last = NULL;
    size_t n = 0;
    bool more = false;
    jwrite_array(out, "items");
    fabric_walk_init(&walk, s, after);
    while (fabric_walk_next(&walk, &e)) {
        more = n == limit || out->overflow;
        if (more)
            break;
        if (n++)
            str_add(out, ",\n");
        fabric_view_entry(&e, out);
        last = e.name;
    }
    jwrite_end_array(out);
    if (more && last)
        jwrite_text(out, "continue", last);
}

/* The files, and why they are not in force as they are now. */
static void write_files(struct fabric_files *files, const char *error,
                        struct str *out)
{
    jwrite_array(out, "files");
    for (size_t i = 0; i < fabric_files_count(files); i++)
        jwrite_text(out, NULL, fabric_files_path(files, i));
    jwrite_end_array(out);
    jwrite_text_or_null(out, "error", *error ? error : NULL);
}

void on_fabric(struct httpd_request *rq, void *ctx)
{
    static const char *const params[] = {"continue", "limit", NULL};
    struct app *app = ctx;
    const char *after = httpd_query(rq, "continue");
    size_t limit = QUERY_LIMIT;
    if (!httpd_query_only(rq, params) ||
        !query_limit(rq, QUERY_LIMIT_MAX, &limit))
        return;
    cleanup_with(snapshot) struct snapshot *s = visible_snapshot(app, rq);
    struct str *out = httpd_reply(rq);
    cleanup_str struct str error = STR_INIT(ERROR_TEXT_MAX);
    if (app->fabric)
        fabric_files_error(app->fabric, &error);
    /* an error comes and goes without a new snapshot */
    if (!error.size && query_is_current(rq, app, s))
        return;
    if (httpd_wants_text(rq)) {
        if (error.size)
            str_addf(out,
                     "the files as they are now are not in force, what "
                     "follows is the fabric before: %s\n\n",
                     str_text(&error));
        httpd_content_type(rq, HTTPD_TEXT);
        fabric_view_text(s, limit, out);
        return;
    }
    str_addf(out,
             "{\"snapshot\":%" PRIu64 ",\"hash\":\"%016" PRIx64
             "\",\"tiers\":[",
             s->number, fabric_hash(s->fabric));
    for (unsigned t = 0; t < fabric_n_tiers(s->fabric); t++)
        jwrite_text(out, NULL, fabric_tier_name(t));
    jwrite_end_array(out);
    if (!after) {
        write_files(app->fabric, str_text(&error), out);
        write_domains(s, out);
    }
    write_items(s, after, limit, out);
    str_add(out, "}\n");
}
