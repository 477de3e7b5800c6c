/* biga allocations */
#include <string.h>

#include "cli/verb/verb.h"
#include "lib/base/mem.h"

/* What a list of allocations has beside where they are. */
struct shown {
    bool nics, achieved, state;
};

static void add_allocation(struct table *t, const cJSON *a,
                           const struct shown *shown)
{
    const cJSON *pod = cJSON_GetObjectItemCaseSensitive(a, "pod");
    const char *relation = cli_relation(a);
    table_addf(t, "%s/%s", json_text(pod, "namespace"), json_text(pod, "name"));
    if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(a, "held")))
        table_add_style(t, STYLE_FAIR, "held"); /* nobody is bound there */
    else
        table_add(t, json_text(pod, "role"));
    table_add(t, json_text(a, "node"));
    cli_add_devices(t, json_list(a, "cards"));
    cli_add_devices(t, json_list(a, "gpus"));
    if (shown->nics)
        cli_add_devices(t, json_list(a, "nics"));
    cli_add_known(t, json_number(a, "numa"));
    table_add_style(t, relation_style(relation), relation);
    if (shown->achieved)
        achieved_add(t, a);
    if (!shown->state)
        return;
    table_add_style(t,
                    json_true(a, "ready")                          ? STYLE_GOOD
                    : strcmp(json_text(a, "state"), "failed") == 0 ? STYLE_BAD
                                                                   : STYLE_FAIR,
                    json_text(a, "state"));
    table_add(t, json_text(a, "reason"));
}

bool allocations_render(struct cli *c, const cJSON *list)
{
    /* was any of them applied?  Then there is more to say than where */
    const struct shown shown = {.nics = cli_any(list, "nics"),
                                .achieved = achieved_any(list),
                                .state = cli_any(list, "state")};
    struct table_column columns[11] = {
        {"POD", false},  {"ROLE", false}, {"NODE", false},
        {"CARD", false}, {"GPU", false},
    };
    size_t n = 5;
    if (shown.nics)
        columns[n++] = (struct table_column){"NIC", false};
    columns[n++] = (struct table_column){"NUMA", true};
    columns[n++] = (struct table_column){"RELATION", false};
    if (shown.achieved)
        columns[n++] = (struct table_column){"ACHIEVED", false};
    if (shown.state) {
        columns[n++] = (struct table_column){"STATE", false};
        columns[n++] = (struct table_column){"REASON", false};
    }
    cleanup_table struct table t;
    const cJSON *a;
    table_init_columns(&t, columns, n);
    cJSON_ArrayForEach(a, list)
    {
        add_allocation(&t, a, &shown);
    }
    table_sort(&t);
    if (t.n_cells)
        table_write(&t, c->colours, &c->out);
    cJSON_ArrayForEach(a, list)
    {
        const cJSON *pod = cJSON_GetObjectItemCaseSensitive(a, "pod");
        cleanup_free char *name = xasprintf(
            "pod %s/%s", json_text(pod, "namespace"), json_text(pod, "name"));
        achieved_line(c, name, a);
    }
    return t.n_cells > 0;
}

int verb_allocations(struct cli *c, int argc, char **argv)
{
    cleanup_str struct str path = STR_INIT(4096);
    cleanup_with(json) cJSON *json = NULL;
    (void)argc;
    (void)argv;
    str_add(&path, "/v1/allocations?limit=100000");
    cli_add_query(&path, "namespace", cli_namespace(c));
    int rc = cli_get(c, str_text(&path), &json);
    if (!rc && json && !allocations_render(c, json_list(json, "items")))
        str_add(&c->out, "No pod has a card: nothing was bound yet.\n");
    return rc;
}
