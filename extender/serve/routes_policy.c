#include "extender/serve/routes_private.h"

#include "extender/app/policy_file.h"
#include "extender/serve/query.h"
#include "extender/state/usage.h"
#include "extender/view/policy_view.h"
#include "lib/base/jwrite.h"
#include "lib/base/mem.h"

void gauge_policy(struct app *app, const struct snapshot *s)
{
    size_t counts[SHARE_STATES];
    if (!app->policy)
        return;
    snapshot_count_shares(s, counts);
    for (size_t i = 0; i < SHARE_STATES; i++) {
        const char *state = share_state_name((enum share_state)i);
        metrics_set(app->listener.metrics, APP_SHARES, &state,
                    (int64_t)counts[i]);
    }
}

/* Why the file as it is now is not in force; nothing when it is.  That may name
 * any namespace. */
static void find_error(const struct app *app, const struct snapshot *s,
                       struct str *out)
{
    if (app->policy)
        policy_file_error(app->policy, out);
    if (!out->size || !s->scope)
        return;
    str_reset(out);
    str_add(out, "it is refused, for reasons that those are told who see all "
                 "namespaces");
}

static void write_text(const struct snapshot *s, const char *error,
                       struct str *out)
{
    if (*error)
        str_addf(out,
                 "the file as it is now is not in force, what follows is the "
                 "policy before: %s\n\n",
                 error);
    policy_view_text(s, out);
}

void on_policy(struct httpd_request *rq, void *ctx)
{
    static const char *const params[] = {NULL};
    struct app *app = ctx;
    struct str *out = httpd_reply(rq);
    cleanup_str struct str error = STR_INIT(ERROR_TEXT_MAX);
    if (!httpd_query_only(rq, params))
        return;
    cleanup_with(snapshot) struct snapshot *s = visible_snapshot(app, rq);
    find_error(app, s, &error);
    if (httpd_wants_text(rq)) {
        httpd_content_type(rq, HTTPD_TEXT);
        write_text(s, str_text(&error), out);
        return;
    }
    jwrite_object(out, NULL);
    jwrite_uint(out, "snapshot", s->number);
    jwrite_text_or_null(out, "file",
                        app->policy ? policy_file_path(app->policy) : NULL);
    jwrite_text_or_null(out, "error", error.size ? error.data : NULL);
    policy_view(s, out);
    str_add(out, "}\n");
}
