/* biga cluster */
#include "cli/verb/verb.h"
#include "lib/base/mem.h"
#include "lib/base/text.h"

static void head_render(struct cli *c, const cJSON *json)
{
    const char *leader = json_text(json, "leader");
    str_add(&c->out, "replica  ");
    text_clean(json_text(json, "replica"), &c->out);
    str_add(&c->out, "\nleader   ");
    text_clean(*leader ? leader : "-", &c->out);
    str_add(&c->out, "\nstate    ");
    text_clean(json_true(json, "ready") ? "ready" : json_text(json, "reason"),
               &c->out);
    str_addf(&c->out, "\nbinds    %.0f in flight\n\n",
             json_number(json, "bindsInFlight"));
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
    cJSON_ArrayForEach(each, list)
    {
        str_add_c(&c->out, '\n');
        text_clean(json_text(each, "namespace"), &c->out);
        str_add_c(&c->out, '/');
        text_clean(json_text(each, "pod"), &c->out);
        str_add(&c->out, " on ");
        text_clean(json_text(each, "node"), &c->out);
        str_add(&c->out, " has no allocation: ");
        text_clean(json_text(each, "reason"), &c->out);
    }
    if (cJSON_GetArraySize(list))
        str_add_c(&c->out, '\n');
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
