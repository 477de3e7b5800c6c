/* biga why, biga simulate */
#include <string.h>

#include "cli/base/documents.h"
#include "cli/base/say.h"
#include "cli/verb/verb.h"
#include "lib/base/mem.h"

static void say_pod(struct cli *c, const cJSON *answer)
{
    const cJSON *pod = cJSON_GetObjectItemCaseSensitive(answer, "pod");
    const char *warning = json_text(answer, "warning");
    const char *note = json_text(answer, "note");
    cli_line(c, "pod %s/%s is %s: %s", json_text(pod, "namespace"),
             json_text(pod, "name"), json_text(answer, "state"),
             json_text(answer, "summary"));
    if (*note)
        cli_line(c, "note: %s", note);
    if (*warning)
        cli_line(c, "warning: %s", warning);
}

/* Where it would go, best first. */
static void say_best(struct cli *c, const cJSON *list)
{
    const bool nics = cli_any(list, "nics");
    struct table_column columns[5] = {
        {"BEST NODES", false},
        {"CARDS", false},
        {"GPUS", false},
    };
    size_t n = 3;
    if (nics)
        columns[n++] = (struct table_column){"NICS", false};
    columns[n++] = (struct table_column){"RELATION", false};
    cleanup_table struct table t;
    const cJSON *x;
    table_init_columns(&t, columns, n);
    cJSON_ArrayForEach(x, list)
    {
        const char *relation = cli_relation(x);
        table_add(&t, json_text(x, "node"));
        cli_add_devices(&t, json_list(x, "cards"));
        cli_add_devices(&t, json_list(x, "gpus"));
        if (nics)
            cli_add_devices(&t, json_list(x, "nics"));
        table_add_style(&t, relation_style(relation), relation);
    }
    cli_write_section(c, &t);
}

/* Why not elsewhere, most frequent reason first. */
static void say_reasons(struct cli *c, const cJSON *list)
{
    static const struct table_column columns[] = {
        {"NODES", true},
        {"REASON", false},
        {"FOR EXAMPLE", false},
        {"WHY THERE", false},
    };
    cleanup_table struct table t;
    const cJSON *x;
    table_init_columns(&t, columns, ARRAY_LEN(columns));
    cJSON_ArrayForEach(x, list)
    {
        const char *message = json_text(x, "message"),
                   *detail = json_text(x, "detail");
        table_addf(&t, "%.0f", json_number(x, "nodes"));
        table_add(&t, message);
        table_add(&t, json_text(x, "example"));
        table_add(&t, strcmp(message, detail) ? detail : ""); /* said */
    }
    cli_write_section(c, &t);
}

/* What would make it fit, the smallest change first. */
static void say_changes(struct cli *c, const cJSON *list)
{
    const cJSON *x;
    bool first = true;
    cJSON_ArrayForEach(x, list)
    {
        str_add(&c->out, first ? "\nIT WOULD FIT WITH ONE OF\n" : "");
        first = false;
        cli_line(c, "  %s", json_text(x, "text"));
    }
}

/* The nodes that lack least. */
static void say_nearest(struct cli *c, const cJSON *list)
{
    static const struct table_column columns[] = {
        {"NEAREST NODES", false},
        {"WHAT IS MISSING", false},
    };
    cleanup_table struct table t;
    const cJSON *x;
    table_init_columns(&t, columns, ARRAY_LEN(columns));
    cJSON_ArrayForEach(x, list)
    {
        table_add(&t, json_text(x, "node"));
        table_add(&t, json_text(x, "detail"));
    }
    cli_write_section(c, &t);
}

/* Where a pod that has its place would go else. */
static void say_runners_up(struct cli *c, const cJSON *list)
{
    static const struct table_column columns[] = {
        {"NEXT BEST", false},
        {"RELATION", false},
        {"WHAT DIFFERS", false},
    };
    cleanup_table struct table t;
    const cJSON *x;
    table_init_columns(&t, columns, ARRAY_LEN(columns));
    cJSON_ArrayForEach(x, list)
    {
        const char *relation = json_text(x, "relation");
        table_add(&t, json_text(x, "node"));
        table_add_style(&t, relation_style(relation), relation);
        table_add(&t, json_text(x, "differs"));
    }
    cli_write_section(c, &t);
}

static void say(struct cli *c, const cJSON *answer)
{
    say_pod(c, answer);
    say_runners_up(c, json_list(answer, "runnersUp"));
    say_best(c, json_list(answer, "best"));
    say_reasons(c, json_list(answer, "reasons"));
    say_nearest(c, json_list(answer, "nearest"));
    say_changes(c, json_list(answer, "changes"));
}

int verb_why(struct cli *c, int argc, char **argv)
{
    cleanup_str struct str path = STR_INIT(4096), key = STR_INIT(1024);
    cleanup_with(json) cJSON *json = NULL;
    (void)argc;
    cli_pod_key(argv[0], &key);
    str_add(&path, "/v1/why?pod=");
    cli_add_encoded(&path, str_text(&key));
    int rc = cli_get(c, str_text(&path), &json);
    if (!rc && json)
        say(c, json);
    return rc;
}

int verb_simulate(struct cli *c, int argc, char **argv)
{
    cleanup_str struct str body = STR_INIT(DOCUMENTS_MAX);
    cleanup_with(json) cJSON *json = NULL;
    const cJSON *x, *results;
    size_t n = 0;
    (void)argc;
    int rc = documents_read(argv[0], &body);
    if (!rc)
        rc = cli_post(
            c, c->set.applied ? "/v1/simulate?applied=true" : "/v1/simulate",
            &body, &json);
    if (rc || !json)
        return rc;
    results = json_list(json, "results");
    if (!results) { /* the scheduler's own request: its answers, as they are */
        cleanup_free char *text = cJSON_Print(json);
        str_addf(&c->out, "%s\n", text);
        return 0;
    }
    cJSON_ArrayForEach(x, results)
    {
        if (n++)
            str_add_c(&c->out, '\n');
        say(c, x);
    }
    return 0;
}
