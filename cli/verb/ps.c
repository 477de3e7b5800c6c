/* biga ps - the pods that were applied, or that a cluster has: how they fare. */
#include <string.h>

#include "cli/base/age.h"
#include "cli/base/say.h"
#include "cli/verb/verb.h"
#include "lib/base/mem.h"

static enum table_style state_style(const cJSON *pod)
{
    const char *state = json_text(pod, "state");
    if (strcmp(state, "failed") == 0)
        return STYLE_BAD;
    if (strcmp(state, "gone") == 0)
        return STYLE_DIM;
    return json_true(pod, "ready") ? STYLE_GOOD : STYLE_FAIR;
}

static void add_pod(struct table *t, const cJSON *pod)
{
    table_addf(t, "%s/%s", json_text(pod, "namespace"), json_text(pod, "name"));
    table_add(t, json_text(pod, "role"));
    table_add(t, json_text(pod, "node"));
    cli_add_devices(t, json_list(pod, "cards"));
    table_add_style(t, state_style(pod), json_text(pod, "state"));
    table_add(t, json_true(pod, "ready") ? "yes" : "no");
    cli_add_known(t, json_number(pod, "restarts"));
    age_add(t, json_text(pod, "submitted"));
    table_add(t, json_text(pod, "reason"));
    cli_add_devices(t, json_list(pod, "gpus"));
    cli_add_devices(t, json_list(pod, "nics"));
    table_add(t, json_text(pod, "job"));
    cli_add_known(t, *json_text(pod, "job") ? json_number(pod, "pair") : -1);
    table_add(t, json_text(pod, "address"));
    table_add(t, json_text(pod, "message"));
}

static const struct listing_column pod_columns[] = {
    {"POD", 0, "NAMESPACE/POD", NULL},
    {"ROLE", 0, "host, xpu or service", NULL},
    {"NODE", 0, "where it is, once it has a place", NULL},
    {"CARD", 0, "PCI addresses of its cards", NULL},
    {"STATE", 0, "pending, wanted, creating, running, stopping, failed or gone",
     NULL},
    {"READY", 0, "yes when all its containers run", NULL},
    {"RESTARTS", LISTING_RIGHT, "of its containers", NULL},
    {"AGE", LISTING_RIGHT | LISTING_AGES, "since it was applied", ".submitted"},
    {"REASON", 0, "a word for why it is in that state", NULL},
    {"GPU", LISTING_WIDE, "PCI addresses of its GPUs", NULL},
    {"NIC", LISTING_WIDE, "PCI addresses of its compute NICs", NULL},
    {"JOB", LISTING_WIDE, "the job that it is of", NULL},
    {"PAIR", LISTING_RIGHT | LISTING_WIDE, "its rank in that job", NULL},
    {"ADDRESS", LISTING_WIDE, "its IP address", NULL},
    {"MESSAGE", LISTING_WIDE, "what to do next", NULL},
};
const struct listing pods_listing = {
    .columns = pod_columns,
    .n_columns = ARRAY_LEN(pod_columns),
    .add = add_pod,
    .none = "There is no pod: biga apply FILE applies one, in a cluster "
            "kubectl does.\n",
};

static void say_fact(struct cli *c, const char *what, const char *text)
{
    if (*text)
        cli_line(c, "%-10s%s", what, text);
}

static void say_containers(struct cli *c, const cJSON *list)
{
    static const struct table_column columns[] = {
        {"CONTAINER", false}, {"STATE", false},  {"EXIT", true},
        {"RESTARTS", true},   {"REASON", false},
    };
    cleanup_table struct table t;
    const cJSON *x;
    table_init_columns(&t, columns, ARRAY_LEN(columns));
    cJSON_ArrayForEach(x, list)
    {
        bool exited = strcmp(json_text(x, "state"), "exited") == 0;
        table_add(&t, json_text(x, "name"));
        table_add(&t, json_text(x, "state"));
        if (exited) /* signals make it negative on some runtimes */
            table_addf(&t, "%.0f", json_number(x, "exitCode"));
        else
            table_add(&t, "");
        cli_add_known(&t, json_number(x, "restarts"));
        table_add(&t, json_text(x, "reason"));
    }
    cli_write_section(c, &t);
}

static void say_pod(struct cli *c, const cJSON *pod)
{
    cleanup_str struct str attempt = STR_INIT(32);
    listing_one(c, pod, &pods_listing);
    str_add_c(&c->out, '\n');
    str_addf(&attempt, "%.0f", json_number(pod, "attempt"));
    say_fact(c, "uid", json_text(pod, "uid"));
    if (*json_text(pod, "job")) {
        cleanup_str struct str job = STR_INIT(1024);
        str_addf(&job, "%s, pair %.0f", json_text(pod, "job"),
                 json_number(pod, "pair"));
        say_fact(c, "job", str_text(&job));
    }
    if (json_number(pod, "attempt") >= 0) /* in a cluster nobody counts */
        say_fact(c, "attempt", str_text(&attempt));
    say_fact(c, "address", json_text(pod, "address"));
    if (json_true(pod, "deleting"))
        say_fact(c, "deleting", "it is to end");
    say_fact(c, "message", json_text(pod, "message"));
    say_containers(c, json_list(pod, "containers"));
}

int verb_ps(struct cli *c, int argc, char **argv)
{
    cleanup_str struct str path = STR_INIT(4096);
    cleanup_with(json) cJSON *json = NULL;
    if (argc == 0) {
        str_add(&path, "/v1/pods?limit=100000");
        cli_add_query(&path, "namespace", cli_namespace(c));
        return listing_get(c, str_text(&path), &pods_listing);
    }
    str_add(&path, "/v1/pods/");
    cli_add_name(&path, argv[0]);
    int rc = cli_get(c, str_text(&path), &json);
    if (rc == 0 && json)
        say_pod(c, json);
    return rc;
}
