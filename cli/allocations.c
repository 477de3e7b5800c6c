/* biga allocations */
#include "cli/verbs.h"

#include "model/base/mem.h"

/* The PCI addresses (or else the ids) of devices. */
static void add_devices(struct table *t, const cJSON *list)
{
    cleanup_str struct str text = STR_INIT(TABLE_CELL_MAX);
    const cJSON *x;
    cJSON_ArrayForEach(x, list)
    {
        const char *pci = json_text(x, "pci");
        str_addf(&text, "%s%s", text.size ? ", " : "",
                 *pci ? pci : json_text(x, "id"));
    }
    table_add(t, str_text(&text));
}

static void add_allocation(struct table *t, const cJSON *a)
{
    const cJSON *pod = cJSON_GetObjectItemCaseSensitive(a, "pod");
    const char *relation = json_text(a, "relation");
    double numa = json_number(a, "numa");
    table_addf(t, "%s/%s", json_text(pod, "namespace"), json_text(pod, "name"));
    if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(a, "held")))
        table_add_style(t, STYLE_FAIR, "held"); /* nobody is bound there */
    else
        table_add(t, json_text(pod, "role"));
    table_add(t, json_text(a, "node"));
    add_devices(t, json_list(a, "cards"));
    add_devices(t, json_list(a, "gpus"));
    if (numa >= 0)
        table_addf(t, "%.0f", numa);
    else
        table_add(t, "");
    table_add_style(t, relation_style(relation), relation);
}

bool allocations_render(struct cli *c, const cJSON *list)
{
    static const struct table_column columns[] = {
        {"POD", false}, {"ROLE", false}, {"NODE", false},     {"CARD", false},
        {"GPU", false}, {"NUMA", true},  {"RELATION", false},
    };
    cleanup_table struct table t;
    const cJSON *a;
    table_init(&t, columns, ARRAY_LEN(columns));
    cJSON_ArrayForEach(a, list)
    {
        add_allocation(&t, a);
    }
    if (t.n_cells)
        table_render(&t, c->colours, &c->out);
    return t.n_cells > 0;
}

int verb_allocations(struct cli *c, int argc, char **argv)
{
    cleanup_with(json) cJSON *json = NULL;
    (void)argc;
    (void)argv;
    int rc = cli_get(c, "/v1/allocations?limit=100000", &json);
    if (!rc && json && !allocations_render(c, json_list(json, "items")))
        str_add(&c->out, "No pod has a card: nothing was bound yet.\n");
    return rc;
}
