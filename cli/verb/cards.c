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
        str_addf(text, "%s%s%s/%s", text->size ? ", " : "", what,
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

static bool any_by_claims(const cJSON *list)
{
    const cJSON *card;
    cJSON_ArrayForEach(card, list)
    {
        if (is_by_claims(card))
            return true;
    }
    return false;
}

/* Columns that are there for some cards only. */
struct extra {
    bool health; /* of a runtime that is watched, or of a DPU */
    bool book;   /* who gives it, where that differs */
};

static void add_card(struct table *t, const cJSON *card,
                     const struct extra *extra)
{
    table_add(t, json_text(card, "node"));
    table_add(t, json_text(card, "id"));
    table_add(t, json_text(card, "pci"));
    cli_add_known(t, json_number(card, "numa"));
    table_add(t, json_text(card, "model"));
    table_add(t, json_text(card, "arch"));
    add_of(t, card, "freeCores", "cores");
    add_of(t, card, "freeMemoryMiB", "memoryMiB");
    table_add_style(t, state_style(json_text(card, "state")),
                    json_text(card, "state"));
    add_users(t, card);
    if (extra->book)
        table_add(t, is_by_claims(card) ? "claims" : "pods");
    if (extra->health)
        add_health(t, card);
}

enum { COLUMNS = 10, ALL_COLUMNS = COLUMNS + 2 };

void cards_render(struct cli *c, const cJSON *list)
{
    struct table_column columns[ALL_COLUMNS] = {
        {"NODE", false}, {"CARD", false},      {"PCI", false},
        {"NUMA", true},  {"MODEL", false},     {"ARCH", false},
        {"CORES", true}, {"MEMORY MiB", true}, {"STATE", false},
        {"PODS", false},
    };
    const struct extra extra = {.health = cli_any(list, "health") ||
                                          cli_any(list, "barred"),
                                .book = any_by_claims(list)};
    size_t n = COLUMNS;
    cleanup_table struct table t;
    const cJSON *card;
    if (extra.book)
        columns[n++] = (struct table_column){"GIVEN TO", false};
    if (extra.health)
        columns[n++] = (struct table_column){"HEALTH", false};
    table_init_columns(&t, columns, n);
    cJSON_ArrayForEach(card, list)
    {
        add_card(&t, card, &extra);
    }
    table_sort(&t);
    cli_write_rows(c, &t, "There is no card.\n");
}

int verb_cards(struct cli *c, int argc, char **argv)
{
    cleanup_str struct str path = STR_INIT(4096);
    cleanup_with(json) cJSON *json = NULL;
    str_add(&path, "/v1/cards?limit=100000");
    cli_add_query(&path, "node", argc ? argv[0] : NULL);
    int rc = cli_get(c, str_text(&path), &json);
    if (!rc && json)
        cards_render(c, json_list(json, "items"));
    return rc;
}
