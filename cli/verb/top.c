/* biga top: what is used of what was given */
#include <string.h>

#include "cli/base/say.h"
#include "cli/verb/verb.h"
#include "lib/base/mem.h"

enum { NODES_PER_PAGE = 1000, CELL_MAX = 64 };

/* "1.5/4", with "-" for what is not known; nothing known: "-". */
static void add_share(struct table *t, const cJSON *of, const char *key,
                      double unit)
{
    const cJSON *used = cJSON_GetObjectItemCaseSensitive(of, "used");
    const cJSON *given = cJSON_GetObjectItemCaseSensitive(of, "given");
    const double amounts[] = {json_number(used, key), json_number(given, key)};
    cleanup_str struct str text = STR_INIT(CELL_MAX);
    for (size_t i = 0; i < ARRAY_LEN(amounts); i++) {
        str_add(&text, i ? "/" : "");
        if (amounts[i] < 0)
            str_add_c(&text, '-');
        else
            str_addf(&text, "%.4g", amounts[i] / unit);
    }
    table_add(t, amounts[0] < 0 && amounts[1] < 0 ? "-" : str_text(&text));
}

static void add_total(struct table *t, const cJSON *of, const char *key,
                      double unit)
{
    const cJSON *total = cJSON_GetObjectItemCaseSensitive(of, "total");
    double n = json_number(total, key);
    if (n < 0)
        table_add(t, "-");
    else
        table_addf(t, "%.4g", n / unit);
}

static void add_amounts(struct table *t, const cJSON *of, bool totals)
{
    add_share(t, of, "cpuMillicores", 1000);
    if (totals)
        add_total(t, of, "cpuMillicores", 1000);
    add_share(t, of, "memoryMiB", 1024);
    if (totals)
        add_total(t, of, "memoryMiB", 1024);
}

/* --- the tables ----------------------------------------------------------- */

static void add_node(struct table *t, const cJSON *node)
{
    table_add(t, json_text(node, "node"));
    add_amounts(t, node, true);
}

static void add_cards(struct table *t, const cJSON *node)
{
    const cJSON *card;
    cJSON_ArrayForEach(card, json_list(node, "cards"))
    {
        const char *pci = json_text(card, "pci");
        table_add(t, json_text(node, "node"));
        table_add(t, *pci ? pci : json_text(card, "id"));
        add_amounts(t, card, true);
    }
}

static void add_pods(struct table *t, const cJSON *node)
{
    const cJSON *pod;
    cJSON_ArrayForEach(pod, json_list(node, "pods"))
    {
        table_addf(t, "%s/%s", json_text(pod, "namespace"),
                   json_text(pod, "name"));
        table_add(t, json_text(pod, "role"));
        table_add(t, json_text(node, "node"));
        add_amounts(t, pod, false);
    }
}

static const struct kind {
    const char *word, *none;
    void (*add)(struct table *t, const cJSON *node);
    size_t n;
    struct table_column columns[6];
} kinds[] = {
    {"nodes",
     "No node has published a slice.",
     add_node,
     5,
     {{"NODE", false},
      {"CPUS-USED/GIVEN", true},
      {"CPUS", true},
      {"GIB-USED/GIVEN", true},
      {"GIB", true}}},
    {"cards",
     "No node has a card.",
     add_cards,
     6,
     {{"NODE", false},
      {"CARD", false},
      {"CORES-USED/GIVEN", true},
      {"CORES", true},
      {"GIB-USED/GIVEN", true},
      {"GIB", true}}},
    {"pods",
     "No pod has a card.",
     add_pods,
     5,
     {{"POD", false},
      {"ROLE", false},
      {"NODE", false},
      {"CORES-USED/GIVEN", true},
      {"GIB-USED/GIVEN", true}}},
};

/* --- the verb ------------------------------------------------------------- */

/* All pages; with --json the first is printed as it is. */
static int fetch(struct cli *c, const char *node, struct table *t,
                 const struct kind *kind, bool *ret_done)
{
    cleanup_free char *after = NULL;
    do {
        cleanup_str struct str path = STR_INIT(4096);
        cleanup_with(json) cJSON *json = NULL;
        str_addf(&path, "/v1/usage?limit=%d", NODES_PER_PAGE);
        cli_add_query(&path, "node", node);
        cli_add_query(&path, "continue", after);
        int rc = cli_get(c, str_text(&path), &json);
        *ret_done = rc || !json;
        if (*ret_done)
            return rc;
        cli_add_rows(t, json_list(json, "items"), kind->add);
        free(after);
        after = xstrdup(json_text(json, "continue"));
    } while (*after);
    return 0;
}

static const struct kind *find_kind(const char *word)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (strcmp(kinds[i].word, word) == 0)
            return &kinds[i];
    return NULL;
}

int verb_top(struct cli *c, int argc, char **argv)
{
    const struct kind *kind = find_kind(argc ? argv[0] : "nodes");
    bool done;
    if (!kind)
        return cli_usage("top: \"%s\": must be nodes, cards or pods", argv[0]);
    cleanup_table struct table t;
    table_init_columns(&t, kind->columns, kind->n);
    int rc = fetch(c, argc > 1 ? argv[1] : NULL, &t, kind, &done);
    if (!done)
        cli_write_rows(c, &t, kind->none);
    return rc;
}
