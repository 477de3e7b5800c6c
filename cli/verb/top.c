/* biga top: what is used of what was given */
#include <string.h>

#include "cli/base/say.h"
#include "cli/base/settings.h"
#include "cli/verb/verb.h"
#include "lib/base/mem.h"

enum { CELL_MAX = 64, PARTS = 3, WHOLE = 1000 /* from here on */ };

/* "1.5/4/8", with "-" for what is not known; nothing known: "-". */
static void add_parts(struct table *t, const cJSON *of, const char *key,
                      double unit, size_t n)
{
    static const char *const parts[PARTS] = {"used", "given", "total"};
    cleanup_str struct str text = STR_INIT(CELL_MAX);
    bool known = false;
    for (size_t i = 0; i < n; i++) {
        double x = json_number(cJSON_GetObjectItemCaseSensitive(of, parts[i]),
                               key);
        str_add(&text, i ? "/" : "");
        if (x < 0)
            str_add_c(&text, '-');
        else
            str_addf(&text, x / unit < WHOLE ? "%.4g" : "%.0f",
                     (double)(int64_t)(x / unit * 1000 + 0.5) / 1000);
        known = known || x >= 0;
    }
    table_add(t, known ? str_text(&text) : "-");
}

static void add_amounts(struct table *t, const cJSON *of, size_t n_parts)
{
    add_parts(t, of, "cpuMillicores", 1000, n_parts);
    add_parts(t, of, "memoryMiB", 1024, n_parts);
}

/* --- the lists ------------------------------------------------------------ */

static void add_node(struct table *t, const cJSON *node)
{
    table_add(t, json_text(node, "node"));
    add_amounts(t, node, PARTS);
}

static const struct listing_column node_columns[] = {
    {"NODE", 0, "its name", NULL},
    {"CPUS(USED/GIVEN/TOTAL)", LISTING_RIGHT,
     "CPUs that its host pods use, those they asked for, and all",
     ".used.cpuMillicores"},
    {"GIB(USED/GIVEN/TOTAL)", LISTING_RIGHT, "the same of its memory",
     ".used.memoryMiB"},
};
const struct listing top_nodes_listing = {
    .columns = node_columns,
    .n_columns = ARRAY_LEN(node_columns),
    .add = add_node,
    .none = "No node has published a slice.\n",
};

static void add_card(struct table *t, const cJSON *card)
{
    const char *pci = json_text(card, "pci");
    table_add(t, json_text(card, "node"));
    table_add(t, *pci ? pci : json_text(card, "id"));
    add_amounts(t, card, PARTS);
}

static const struct listing_column card_columns[] = {
    {"NODE", 0, "the node that it is plugged into", NULL},
    {"CARD", 0, "its PCI address there", NULL},
    {"CORES(USED/GIVEN/TOTAL)", LISTING_RIGHT,
     "cores that all on it use, those given to pods, and all",
     ".used.cpuMillicores"},
    {"GIB(USED/GIVEN/TOTAL)", LISTING_RIGHT, "the same of its memory",
     ".used.memoryMiB"},
};
const struct listing top_cards_listing = {
    .columns = card_columns,
    .n_columns = ARRAY_LEN(card_columns),
    .add = add_card,
    .none = "No node has a card.\n",
};

static void add_pod(struct table *t, const cJSON *pod)
{
    const cJSON *used = cJSON_GetObjectItemCaseSensitive(pod, "used");
    table_addf(t, "%s/%s", json_text(pod, "namespace"), json_text(pod, "name"));
    table_add(t, json_text(pod, "role"));
    table_add(t, json_text(pod, "node"));
    add_amounts(t, pod, PARTS - 1);
    table_add(t, json_text(used, "at"));
}

static const struct listing_column pod_columns[] = {
    {"POD", 0, "NAMESPACE/POD", NULL},
    {"ROLE", 0, "host, xpu or service", NULL},
    {"NODE", 0, "where it is", NULL},
    {"CORES(USED/GIVEN)", LISTING_RIGHT,
     "cores that it uses, and those it asked for: of its card, or CPUs",
     ".used.cpuMillicores"},
    {"GIB(USED/GIVEN)", LISTING_RIGHT, "the same of memory", ".used.memoryMiB"},
    {"SINCE", LISTING_WIDE, "when it began to use about as much", NULL},
};
const struct listing top_pods_listing = {
    .columns = pod_columns,
    .n_columns = ARRAY_LEN(pod_columns),
    .add = add_pod,
    .none = "No pod has a card.\n",
};

/* --- the verb ------------------------------------------------------------- */

static const struct kind {
    const char *word, *one;
    const char *member; /* of a node's usage; NULL: it is that */
    const struct listing *listing;
} kinds[] = {
    {"nodes", "node", NULL, &top_nodes_listing},
    {"cards", "card", "cards", &top_cards_listing},
    {"pods", "pod", "pods", &top_pods_listing},
};

static const struct kind *find_kind(const char *word)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (strcmp(kinds[i].word, word) == 0 || strcmp(kinds[i].one, word) == 0)
            return &kinds[i];
    return NULL;
}

const struct listing *top_listing(const char *word)
{
    const struct kind *kind = find_kind(word);
    return kind ? kind->listing : NULL;
}

/* The items, which are nodes, become what they have, with their node. */
static void unfold(cJSON *answer, const char *member, const char *namespace)
{
    cJSON *nodes = cJSON_DetachItemFromObjectCaseSensitive(answer, "items");
    cJSON *items = cJSON_AddArrayToObject(answer, "items"), *node, *x;
    cJSON_ArrayForEach(node, nodes)
    {
        cJSON *of = cJSON_GetObjectItemCaseSensitive(node, member);
        while (of && (x = cJSON_DetachItemFromArray(of, 0))) {
            const char *own = json_text(x, "namespace");
            (void)cJSON_AddStringToObject(x, "node", json_text(node, "node"));
            if (!namespace || strcmp(namespace, own) == 0)
                (void)cJSON_AddItemToArray(items, x);
            else
                cJSON_Delete(x);
        }
    }
    cJSON_Delete(nodes);
}

static int show_parts(struct cli *c, const char *path, const struct kind *kind)
{
    cleanup_with(json) cJSON *answer = NULL;
    const bool json = c->set.json;
    int rc = listing_check(c, kind->listing);
    c->set.json = false; /* what is asked is for us */
    if (rc == 0)
        rc = cli_get(c, path, &answer);
    c->set.json = json;
    if (rc)
        return rc;
    unfold(answer, kind->member,
           strcmp(kind->one, "pod") == 0 ? cli_namespace(c) : NULL);
    return listing_show(c, answer, kind->listing);
}

int verb_top(struct cli *c, int argc, char **argv)
{
    cleanup_str struct str path = STR_INIT(4096);
    static const char *const words[] = {"nodes", "cards", "pods", NULL};
    const struct kind *kind = find_kind(argc ? argv[0] : "nodes");
    if (!kind)
        return cli_usage_word("top", argv[0], words);
    if (strcmp(kind->one, "pod") != 0 && cli_is_given(c, "namespace"))
        return cli_usage("top %s: takes no --namespace: they are in none",
                         kind->word);
    c->kind = kind->one;
    str_add(&path, "/v1/usage?limit=100000");
    cli_add_query(&path, "node", argc > 1 ? argv[1] : NULL);
    return kind->member ? show_parts(c, str_text(&path), kind)
                        : listing_get(c, str_text(&path), kind->listing);
}
