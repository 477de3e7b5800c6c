/* biga ps - the pods that were applied, or that a cluster has: how they fare. */
#include <string.h>

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
    table_add(t, json_text(pod, "reason"));
}

static const struct table_column pod_columns[] = {
    {"POD", false},   {"ROLE", false},  {"NODE", false},    {"CARD", false},
    {"STATE", false}, {"READY", false}, {"RESTARTS", true}, {"REASON", false},
};

static void say_pods(struct cli *c, const cJSON *list)
{
    cleanup_table struct table t;
    table_init_columns(&t, pod_columns, ARRAY_LEN(pod_columns));
    cli_add_rows(&t, list, add_pod);
    table_sort(&t);
    cli_write_rows(c, &t,
                   "There is no pod: biga apply FILE applies one, in a "
                   "cluster kubectl does.\n");
}

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
    cleanup_table struct table t;
    cleanup_str struct str attempt = STR_INIT(32);
    table_init_columns(&t, pod_columns, ARRAY_LEN(pod_columns));
    add_pod(&t, pod);
    table_write(&t, c->colours, &c->out);
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
    } else {
        str_add(&path, "/v1/pods/");
        cli_add_name(&path, argv[0]);
    }
    int rc = cli_get(c, str_text(&path), &json);
    if (rc == 0 && json && argc == 0)
        say_pods(c, json_list(json, "items"));
    else if (rc == 0 && json)
        say_pod(c, json);
    return rc;
}
