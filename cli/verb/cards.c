/* biga cards */
#include <string.h>

#include "cli/verb/verb.h"
#include "lib/base/mem.h"

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

static enum table_style state_style(const char *state)
{
    return strcmp(state, "idle") == 0   ? STYLE_GOOD
           : strcmp(state, "used") == 0 ? STYLE_PLAIN
           : strcmp(state, "held") == 0 || strcmp(state, "drained") == 0
               ? STYLE_FAIR
               : STYLE_BAD;
}

static void add_names(struct str *text, const char *what, const cJSON *list)
{
    const cJSON *x;
    cJSON_ArrayForEach(x, list)
    {
        str_addf(text, "%s%s%s/%s", text->size ? "," : "", what,
                 json_text(x, "namespace"), json_text(x, "name"));
    }
}

/* "ns/pod, claim ns/name" */
static void add_users(struct table *t, const cJSON *card)
{
    cleanup_str struct str text = STR_INIT(TABLE_CELL_MAX);
    add_names(&text, "", json_list(card, "pods"));
    add_names(&text, "claim ", json_list(card, "claims"));
    table_add(t, str_text(&text));
}

/* "lost: no answer for 5 s"; and what a DPU operator has against it. */
static void add_health(struct table *t, const cJSON *card)
{
    const char *health = json_text(card, "health");
    const char *reason = json_text(card, "healthReason");
    const char *barred = json_text(card, "barred");
    cleanup_str struct str text = STR_INIT(TABLE_CELL_MAX);
    enum table_style style = *barred                          ? STYLE_FAIR
                             : strcmp(health, "ready") == 0   ? STYLE_GOOD
                             : strcmp(health, "suspect") == 0 ? STYLE_FAIR
                             : strcmp(health, "drained") == 0 ? STYLE_FAIR
                             : *health                        ? STYLE_BAD
                                                              : STYLE_PLAIN;
    str_addf(&text, "%s%s%s", health, *health && *reason ? ": " : "",
             *health ? reason : "");
    str_addf(&text, "%s%s", text.size && *barred ? "; " : "", barred);
    table_add_style(t, style, str_text(&text));
}

static bool is_by_claims(const cJSON *card)
{
    return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(card, "claims"));
}

static void add_card(struct table *t, const cJSON *card)
{
    const char *pci = json_text(card, "pci");
    table_add(t, json_text(card, "node"));
    table_add(t, *pci ? pci : json_text(card, "id"));
    cli_add_known(t, json_number(card, "numa"));
    table_add(t, json_text(card, "model"));
    table_add(t, json_text(card, "arch"));
    add_of(t, card, "freeCores", "cores");
    add_of(t, card, "freeMemoryMiB", "memoryMiB");
    table_add_style(t, state_style(json_text(card, "state")),
                    json_text(card, "state"));
    add_users(t, card);
    add_health(t, card);
    table_add(t, json_text(card, "id"));
    table_add(t, json_text(card, "serial"));
    table_add(t, json_text(card, "fabricPort"));
    table_add(t, json_text(card, "endpoint"));
    table_add(t, is_by_claims(card) ? "claims" : "pods");
}

static const struct listing_column card_columns[] = {
    {"NODE", 0, "the node that it is plugged into", NULL},
    {"CARD", 0, "its PCI address there, which every command takes", NULL},
    {"NUMA", LISTING_RIGHT, "the NUMA node that it is next to", NULL},
    {"MODEL", 0, "as the node or the card file tells", NULL},
    {"ARCH", 0, "of its cores, which images have to be for", NULL},
    {"CORES(FREE/TOTAL)", LISTING_RIGHT, "cores not given to pods, of all",
     ".freeCores"},
    {"MIB(FREE/TOTAL)", LISTING_RIGHT, "MiB of memory not given, of all",
     ".freeMemoryMiB"},
    {"STATE", 0,
     "idle, used, held for a planned job, unhealthy, drained, or unavailable "
     "as its node is",
     NULL},
    {"PODS", 0, "who is on it: NAMESPACE/POD, or claim NAMESPACE/NAME", NULL},
    {"HEALTH", 0, "of its container runtime, where one is watched, and why",
     NULL},
    {"ID", LISTING_WIDE, "its name in ResourceSlices", NULL},
    {"SERIAL", LISTING_WIDE, "its serial number", NULL},
    {"PORT", LISTING_WIDE, "the switch port that it hangs on", NULL},
    {"ENDPOINT", LISTING_WIDE, "where its container runtime listens", NULL},
    {"GIVEN-TO", LISTING_WIDE,
     "pods, by allocations; or claims, of Dynamic Resource Allocation", NULL},
};
const struct listing cards_listing = {
    .columns = card_columns,
    .n_columns = ARRAY_LEN(card_columns),
    .add = add_card,
    .none = "There is no card.\n",
};

int verb_cards(struct cli *c, int argc, char **argv)
{
    cleanup_str struct str path = STR_INIT(4096);
    str_add(&path, "/v1/cards?limit=100000");
    cli_add_query(&path, "node", argc ? argv[0] : NULL);
    return listing_get(c, str_text(&path), &cards_listing);
}
