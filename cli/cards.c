/* biga cards */
#include "cli/verbs.h"
#include "model/base/mem.h"

static void add_of(struct table *t, const cJSON *card, const char *have,
                   const char *of)
{
    double x = json_number(card, have), y = json_number(card, of);
    if (y > 0 && x >= 0)
        table_addf(t, "%.0f/%.0f", x, y);
    else if (y > 0)
        table_addf(t, "%.0f", y);
    else
        table_add(t, "");
}

static void add_card(struct table *t, const cJSON *card)
{
    double numa = json_number(card, "numa");
    table_add(t, json_text(card, "node"));
    table_add(t, json_text(card, "id"));
    table_add(t, json_text(card, "pci"));
    if (numa >= 0)
        table_addf(t, "%.0f", numa);
    else
        table_add(t, "");
    table_add(t, json_text(card, "model"));
    table_add(t, json_text(card, "arch"));
    add_of(t, card, "freeCores", "cores");
    add_of(t, card, "freeMemoryMiB", "memoryMiB");
    table_add(t, json_text(card, "state"));
}

int verb_cards(struct cli *c, int argc, char **argv)
{
    static const struct table_column columns[] = {
        {"NODE", false},  {"CARD", false}, {"PCI", false},
        {"NUMA", true},   {"MODEL", false}, {"ARCH", false},
        {"CORES", true},  {"MEMORY MiB", true}, {"STATE", false},
    };
    cleanup_str struct str path = STR_INIT(4096);
    cleanup_with(json) cJSON *json = NULL;
    cleanup_table struct table t;
    const cJSON *card;
    table_init(&t, columns, ARRAY_LEN(columns));
    str_add(&path, "/v1/cards");
    if (argc) {
        str_add(&path, "?node=");
        cli_add_encoded(&path, argv[0]);
    }
    int rc = cli_get(c, str_text(&path), &json);
    if (rc || !json)
        return rc;
    cJSON_ArrayForEach(card, json_list(json, "items"))
    {
        add_card(&t, card);
    }
    if (t.n_cells)
        table_render(&t, c->colours, &c->out);
    else
        str_add(&c->out, "There is no card.\n");
    return 0;
}
