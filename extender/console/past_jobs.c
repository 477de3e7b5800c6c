/* Jobs and pods that waited, as they were. */
#include <stdlib.h>
#include <string.h>

#include "extender/console/html.h"
#include "extender/console/past.h"
#include "lib/base/mem.h"
#include "lib/base/strmap.h"
#include "lib/io/rfc3339.h"
#include "model/topo/topo_relation.h"

enum { SCANS_MAX = 5 }; /* questions of HISTORY_SCAN_MAX events */

/* --- jobs that had places ------------------------------------------------- */

struct past_job {
    char *namespace, *name;
    char since[RFC3339_SIZE]; /* its first place that it had then */
    size_t pods, pairs;
    enum relation worst;
    bool related;
    char key[];
};

struct past_jobs {
    struct strmap by_key;
    struct past_job **list;
    size_t n, cap;
};

static struct past_job *job_of(struct past_jobs *all, const cJSON *pod)
{
    const char *namespace = past_text(pod, "namespace");
    const char *name = past_text(pod, "job");
    cleanup_free char *key = xasprintf("%s/%s", namespace, name);
    struct past_job *job = strmap_get(&all->by_key, key);
    if (job)
        return job;
    job = xcalloc(1, sizeof *job + strlen(key) + 1);
    memcpy(job->key, key, strlen(key) + 1);
    job->namespace = xstrdup(namespace);
    job->name = xstrdup(name);
    strmap_put(&all->by_key, job->key, job);
    all->list = xgrow(all->list, all->n, &all->cap, sizeof(*all->list));
    return all->list[all->n++] = job;
}

static void take_pod(struct past_jobs *all, const cJSON *pod)
{
    const char *since = past_text(pod, "since");
    enum relation relation;
    struct error err = {0};
    if (!*past_text(pod, "job"))
        return;
    struct past_job *job = job_of(all, pod);
    job->pods++;
    job->pairs += strcmp(past_text(pod, "role"), pod_role_name(ROLE_HOST)) == 0;
    if (!*job->since || strcmp(since, job->since) < 0)
        (void)snprintf(job->since, sizeof job->since, "%s", since);
    if (relation_parse(past_text(pod, "relation"), &relation, &err) < 0)
        return;
    if (!job->related || relation > job->worst)
        job->worst = relation;
    job->related = true;
}

static void take_node(void *ctx, const cJSON *node)
{
    const cJSON *pod;
    cJSON_ArrayForEach(pod, past_list(node, "pods")) take_pod(ctx, pod);
}

static int job_order(const void *a, const void *b)
{
    const struct past_job *x = *(struct past_job *const *)a;
    const struct past_job *y = *(struct past_job *const *)b;
    int order = strcmp(x->namespace, y->namespace);
    return order ? order : strcmp(x->name, y->name);
}

static void job_free(struct past_job *job)
{
    free(job->namespace);
    free(job->name);
    free(job);
}

static void job_row(const struct past_job *job, struct str *out)
{
    const char *word = job->related ? relation_name(job->worst) : "–";
    str_add(out, "<th scope=\"row\">");
    html_add_link(out, "jobs", job->namespace, job->name, job->name);
    html_addf(out,
              "</th><td>%s</td><td class=\"n\">%zu</td><td class=\"n\">%zu"
              "</td><td>",
              job->namespace, job->pairs, job->pods);
    html_add_badge(out, relation_class(word), word);
    html_addf(out, "</td><td class=\"time\">%s</td></tr>\n", job->since);
}

static int write_jobs(struct console_then *t, struct history_reader *r,
                      struct error *err)
{
    static const char heads[] =
        "<th scope=\"col\">Job</th><th scope=\"col\">Namespace</th>"
        "<th scope=\"col\" class=\"n\">Host pods placed</th>"
        "<th scope=\"col\" class=\"n\">Pods placed</th>"
        "<th scope=\"col\">Relation</th><th scope=\"col\">Since</th>";
    struct past_jobs all = {0};
    past_write_banner(t);
    int e = past_each_node(r, t->ms, take_node, &all, err);
    if (all.n)
        qsort(all.list, all.n, sizeof(*all.list), job_order);
    for (size_t i = 0; i < all.n; i++) {
        if (console_list_next(&t->list))
            job_row(all.list[i], &t->list.rows);
        job_free(all.list[i]);
    }
    free(all.list);
    strmap_fini(&all.by_key);
    if (e == 0)
        console_list_end(&t->list, &t->reply, heads, "jobs that had places");
    return e;
}

void past_show_jobs(struct console_reply *r, struct console_list *list)
{
    struct console_then *t = xcalloc(1, sizeof *t);
    t->list = *list;
    t->write = write_jobs;
    console_then_past(t, r);
}

/* --- pods that were refused ----------------------------------------------- */

struct past_pending {
    struct console_list *list;
    struct strmap seen; /* pods whose newest event was seen; owned keys */
};

static void pod_row(const struct history_event *e, struct str *out)
{
    char time[RFC3339_SIZE];
    const char *slash = strchr(e->object, '/');
    const char *name = slash ? slash + 1 : e->object;
    cleanup_free char *namespace =
        xstrndup(e->object, slash ? (size_t)(slash - e->object) : 0);
    const char *job = e->job ? strchr(e->job, '/') : NULL;
    rfc3339_format(e->time_ms, time);
    str_add(out, "<th scope=\"row\">");
    html_add_link(out, "pods", namespace, name, name);
    html_addf(out, "</th><td>%s</td><td>", namespace);
    if (job)
        html_add_link(out, "jobs", namespace, job + 1, job + 1);
    html_addf(out, "</td><td class=\"time\">%s</td><td>%s</td></tr>\n", time,
              e->message ? e->message : "");
}

/* The newest of a pod says how it was. */
static void take_event(void *ctx, const struct history_event *e)
{
    struct past_pending *p = ctx;
    if (!e->object || strmap_get(&p->seen, e->object))
        return;
    char *key = xstrdup(e->object);
    strmap_put(&p->seen, key, key);
    if (e->reason == HISTORY_REFUSED && console_list_next(p->list))
        pod_row(e, &p->list->rows);
}

static int write_pending(struct console_then *t, struct history_reader *r,
                         struct error *err)
{
    static const char heads[] =
        "<th scope=\"col\">Pod</th><th scope=\"col\">Namespace</th>"
        "<th scope=\"col\">Job</th><th scope=\"col\">Refused since</th>"
        "<th scope=\"col\">Why</th>";
    struct past_pending p = {.list = &t->list};
    struct history_filter f = {.kind = HISTORY_POD,
                               .reason = HISTORY_REASONS,
                               .until_ms = t->ms,
                               .newest_first = true,
                               .limit = HISTORY_SCAN_MAX};
    uint64_t next = 1;
    int e = 0;
    past_write_banner(t);
    str_add(&t->reply.out,
            "<p>Pods whose newest event by then was a refusal.</p>\n");
    for (int i = 0; e == 0 && next && i < SCANS_MAX; i++) {
        next = 0;
        e = history_read_events(r, &f, take_event, &p, &next, err);
        f.after = next;
    }
    strmap_fini_with(&p.seen, free);
    if (e == 0 && next)
        str_add(&t->reply.out, "<p>Earlier events were not looked at.</p>\n");
    if (e == 0)
        console_list_end(&t->list, &t->reply, heads, "pods that waited");
    return e;
}

void past_show_pending(struct console_reply *r, struct console_list *list)
{
    struct console_then *t = xcalloc(1, sizeof *t);
    t->list = *list;
    t->write = write_pending;
    console_then_past(t, r);
}
