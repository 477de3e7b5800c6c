/* biga cluster */
#include "cli/base/say.h"
#include "cli/verb/verb.h"
#include "lib/base/mem.h"

static void head_render(struct cli *c, const cJSON *json)
{
    const char *leader = json_text(json, "leader");
    cli_line(c, "replica  %s", json_text(json, "replica"));
    cli_line(c, "leader   %s", *leader ? leader : "-");
    cli_line(c, "state    %s",
             json_true(json, "ready") ? "ready" : json_text(json, "reason"));
    cli_line(c, "binds    %.0f in flight", json_number(json, "bindsInFlight"));
    const cJSON *gates = cJSON_GetObjectItemCaseSensitive(json, "gates");
    if (gates)
        cli_line(c, "gates    %.0f pods wait, %.0f are being opened",
                 json_number(gates, "waiting"), json_number(gates, "opening"));
    str_add_c(&c->out, '\n');
}

static void collections_render(struct cli *c, const cJSON *list)
{
    static const struct table_column columns[] = {
        {"COLLECTION", false}, {"STATE", false}, {"HEARD s", true},
        {"EVENTS", true},      {"LISTS", true},  {"WATCHES", true},
        {"FAILURES", true},    {"ERROR", false},
    };
    static const char *const numbers[] = {"events", "lists", "watches",
                                          "failures"};
    cleanup_table struct table t;
    const cJSON *each;
    table_init_columns(&t, columns, ARRAY_LEN(columns));
    cJSON_ArrayForEach(each, list)
    {
        table_add(&t, json_text(each, "name"));
        table_add(&t, !json_true(each, "synced")    ? "not listed"
                      : json_true(each, "watching") ? "watching"
                                                    : "waiting");
        cli_add_known(&t, json_number(each, "heardSecondsAgo"));
        for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
            table_addf(&t, "%.0f", json_number(each, numbers[i]));
        table_add(&t, json_text(each, "error"));
    }
    table_write(&t, c->colours, &c->out);
}

static void unaccounted_render(struct cli *c, const cJSON *list)
{
    const cJSON *each;
    if (cJSON_GetArraySize(list))
        str_add_c(&c->out, '\n');
    cJSON_ArrayForEach(each, list)
    {
        cli_line(c, "%s/%s on %s has no allocation: %s",
                 json_text(each, "namespace"), json_text(each, "pod"),
                 json_text(each, "node"), json_text(each, "reason"));
    }
}

int verb_cluster(struct cli *c, int argc, char **argv)
{
    cleanup_with(json) cJSON *json = NULL;
    (void)argc;
    (void)argv;
    int rc = cli_get(c, "/v1/cluster", &json);
    if (rc || !json)
        return rc;
    head_render(c, json);
    collections_render(c, json_list(json, "collections"));
    unaccounted_render(c, json_list(json, "unaccountedPods"));
    return 0;
}
