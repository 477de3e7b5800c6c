#include "extender/console/pages.h"

#include <stdlib.h>
#include <string.h>

#include "extender/console/change_command.h"
#include "extender/console/console_then.h"
#include "extender/console/html.h"
#include "extender/judge/alignment.h"
#include "extender/judge/why.h"
#include "extender/pods/pending_demands.h"
#include "extender/serve/pending.h"
#include "lib/base/mem.h"

/* --- why it waits --------------------------------------------------------- */

static void write_reasons(const struct why *why, struct str *out)
{
    const struct schedule *s = &why->schedule;
    str_add(out, "<h2>Why not</h2>\n<div class=\"wide\"><table class=\"rows\">"
                 "<thead><tr><th scope=\"col\" class=\"n\">Nodes</th>"
                 "<th scope=\"col\">Reason</th><th scope=\"col\">For instance"
                 "</th></tr></thead><tbody>\n");
    for (enum reason x = REASON_NONE + 1; x < REASON_COUNT; x++) {
        cleanup_str struct str brief = STR_INIT(STR_MAX_DEFAULT),
                               whole = STR_INIT(STR_MAX_DEFAULT);
        if (!why->count[x])
            continue;
        const char *node =
            snapshot_node(s->snapshot, (size_t)why->example[x])->name;
        schedule_brief(s, x, &brief);
        schedule_explain(s, why->example[x], x, &whole);
        html_addf(out,
                  "<tr><td class=\"n\">%zu</td><th scope=\"row\">%s</th>"
                  "<td>",
                  why->count[x], str_text(&brief));
        html_add_link(out, "nodes", node, NULL, node);
        html_addf(out, ": %s</td></tr>\n", str_text(&whole));
    }
    str_add(out, "</tbody></table></div>\n");
}

/* `cluster`: its pods are the API server's. */
static void write_changes(const struct why *why, bool cluster, struct str *out)
{
    if (why->advice.n_changes == 0)
        return;
    str_add(out, "<h2>It would fit with one of</h2>\n<ul class=\"changes\">\n");
    for (size_t i = 0; i < why->advice.n_changes; i++) {
        const struct change *c = &why->advice.changes[i];
        cleanup_str struct str text = STR_INIT(STR_MAX_DEFAULT),
                               command = STR_INIT(STR_MAX_DEFAULT);
        change_text(&why->schedule, c, &text);
        change_command(&why->schedule, c, cluster, &command);
        html_addf(out, "<li><span>%s</span> ", str_text(&text));
        html_add_command(out, str_text(&command));
        str_add(out, "</li>\n");
    }
    str_add(out, "</ul>\n");
}

static void write_why(struct console_reply *r, const struct demand *demand,
                      const char *note, bool cluster)
{
    size_t n = 0;
    cleanup_with(candidates) struct candidates *names =
        pending_demands_candidates(r->app->demands, demand->uid);
    cleanup_free int32_t *indexes = candidates_indexes(names, r->snapshot, &n);
    cleanup_str struct str text = STR_INIT(65536);
    cleanup_why struct why why;
    struct why_names last = {indexes, n};
    why_init(&why, r->snapshot, demand, r->app->plans, &last);
    why_advise(&why);
    pending_summary(r->app, &why, &text);
    html_addf(&r->out, "<p class=\"lead\">%s</p>\n", str_text(&text));
    if (*note)
        html_addf(&r->out, "<p>%s</p>\n", note);
    write_changes(&why, cluster, &r->out);
    if (why.n_fitting == 0)
        write_reasons(&why, &r->out);
}

/* --- a pod ---------------------------------------------------------------- */

static void write_title(struct console_reply *r, const char *namespace,
                        const char *name, const char *class, const char *state)
{
    html_addf(&r->out, "<p class=\"path\">%s</p>\n<h1>Pod %s ", namespace,
              name);
    html_add_badge(&r->out, class, state);
    str_add(&r->out, "</h1>\n");
}

static void write_job_link(const struct demand *d, struct str *out)
{
    if (!*d->job)
        return;
    str_add(out, "<p>Of job ");
    html_add_link(out, "jobs", d->namespace, d->job, d->job);
    html_addf(out, ", pair %d.</p>\n", (int)d->pair);
}

/* `cluster`: its logs are the kubelet's. */
static void write_logs(const struct demand *d, bool cluster, struct str *out)
{
    if (cluster) {
        cleanup_str struct str kubectl = STR_INIT(4096);
        str_add(&kubectl, "kubectl logs -f -n ");
        shell_add_word(&kubectl, d->namespace);
        str_add_c(&kubectl, ' ');
        shell_add_word(&kubectl, d->name);
        str_add(out, "<h2>Log</h2>\n");
        html_add_command(out, str_text(&kubectl));
        return;
    }
    str_add(out, "<h2>Log</h2>\n<p class=\"log\"><a class=\"log\" "
                 "href=\"/v1/pods/");
    html_add_segment(out, d->namespace);
    str_add_c(out, '/');
    html_add_segment(out, d->name);
    str_add(out, "/log?tailLines=200\">The last 200 lines</a></p>\n");
    cleanup_str struct str command = STR_INIT(4096);
    str_add(&command, "biga logs -f ");
    shell_add_word(&command, d->namespace);
    str_add_c(&command, '/');
    shell_add_word(&command, d->name);
    html_add_command(out, str_text(&command));
}

static void write_placed(struct console_reply *r, const struct allocation *a)
{
    const struct demand *d = &a->demand;
    cleanup_str struct str text = STR_INIT(8192);
    write_title(r, d->namespace, d->name, "good", "placed");
    alignment_explain(r->snapshot, a, &text);
    pod_source_tell(&r->app->source, add_health, a, &text);
    str_add(&r->out, "<p class=\"lead\">On ");
    html_add_link(&r->out, "nodes", a->node, NULL, a->node);
    html_addf(&r->out, "%s</p>\n", str_text(&text));
    write_job_link(d, &r->out);
    pods_table_write(r, &a, 1, &r->out);
    write_logs(d, pod_source_has(&r->app->source, bind), &r->out);
}

static void write_told(struct console_reply *r, const struct demand *d,
                       const char *state, const char *text)
{
    write_title(r, d->namespace, d->name,
                strcmp(state, "refused") == 0 ? "bad" : "fair", state);
    html_addf(&r->out, "<p class=\"lead\">%s</p>\n", text);
    write_job_link(d, &r->out);
}

static void write_pending(struct console_reply *r, const struct demand *d,
                          const char *note, bool cluster)
{
    write_title(r, d->namespace, d->name, "fair", "pending");
    write_job_link(d, &r->out);
    write_why(r, d, note, cluster);
}

/* What the source of pods says of it; false: nothing. */
static bool write_account(struct console_reply *r, const char *namespace,
                          const char *name)
{
    struct pod_account account = {.text = STR_INIT(4096)};
    bool found = pod_source_ask(&r->app->source, find, r->snapshot, namespace,
                                name, &account);
    if (found && account.place)
        write_placed(r, account.place);
    else if (found && account.state)
        write_told(r, &account.demand, account.state, str_text(&account.text));
    else if (found)
        write_pending(r, &account.demand, str_text(&account.text),
                      pod_source_has(&r->app->source, bind));
    str_fini(&account.text);
    return found;
}

/* What kube-scheduler has asked of it. */
static bool write_asked(struct console_reply *r, const char *namespace,
                        const char *name)
{
    struct demand demand;
    cleanup_free char *refusal = NULL;
    if (!pending_demands_find_name(r->app->demands, namespace, name, &demand,
                                   &refusal))
        return false;
    if (refusal)
        write_told(r, &demand, "refused", refusal);
    else if (demand.role == ROLE_NONE)
        return false;
    else
        write_pending(r, &demand, "", true);
    return true;
}

void page_pod(struct httpd_request *rq, void *ctx)
{
    static const char *const params[] = {"at", NULL};
    const char *namespace = httpd_arg(rq, 0), *name = httpd_arg(rq, 1);
    struct console_reply r;
    if (!console_begin(&r, rq, ctx, CONSOLE_SECTIONS, params))
        return;
    r.page.title = name;
    if (console_then_is_asked(&r)) {
        console_then_show(&r, HISTORY_POD, xasprintf("%s/%s", namespace, name));
        return;
    }
    const struct allocation *a = alloc_index_find(r.snapshot->allocations,
                                                  namespace, name);
    if (a)
        write_placed(&r, a);
    else if (!write_account(&r, namespace, name) &&
             !write_asked(&r, namespace, name))
        console_miss(&r,
                     "Pod %.63s/%.253s is not known here: it is gone, or "
                     "nobody has asked for a place for it.",
                     namespace, name);
    console_then_events(&r, HISTORY_POD, xasprintf("%s/%s", namespace, name));
}
