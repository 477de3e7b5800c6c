/* biga nodes, biga node */
#include <string.h>

#include "cli/base/say.h"
#include "cli/verb/verb.h"
#include "lib/base/mem.h"

static enum table_style status_style(const char *status)
{
    return strcmp(status, "ready") == 0 ? STYLE_GOOD : STYLE_BAD;
}

static void add_node(struct table *t, const cJSON *node)
{
    const cJSON *cards = cJSON_GetObjectItemCaseSensitive(node, "cards");
    const cJSON *gpus = cJSON_GetObjectItemCaseSensitive(node, "gpus");
    const char *status = json_text(node, "status");
    table_add(t, json_text(node, "name"));
    table_add_style(t, status_style(status), status);
    cli_add_known(t, json_number(cards, "total"));
    cli_add_known(t, json_number(cards, "idle"));
    cli_add_known(t, json_number(gpus, "total"));
    cli_add_known(t, json_number(gpus, "free"));
    cli_add_known(t, json_number(node, "allocations"));
    cli_add_known(t, json_number(node, "generation"));
    cli_add_known(t, json_number(cards, "drained"));
}

int verb_nodes(struct cli *c, int argc, char **argv)
{
    static const struct table_column columns[] = {
        {"NODE", false}, {"STATUS", false},    {"CARDS", true},
        {"IDLE", true},  {"GPUS", true},       {"FREE", true},
        {"PODS", true},  {"GENERATION", true}, {"DRAINED", true},
    };
    cleanup_with(json) cJSON *json = NULL;
    cleanup_table struct table t;
    (void)argc;
    (void)argv;
    table_init_columns(&t, columns, ARRAY_LEN(columns));
    int rc = cli_get(c, "/v1/nodes?limit=100000", &json);
    if (rc || !json)
        return rc;
    cli_add_rows(&t, json_list(json, "items"), add_node);
    table_sort(&t);
    cli_write_rows(c, &t,
                   "No node has published its topology: start "
                   "biga-advertiser on the nodes.\n");
    return 0;
}

/* What the host has left for pods, as far as it is known. */
static void say_room(struct cli *c, const cJSON *room)
{
    static const struct {
        const char *key, *unit;
        double each;
    } parts[] = {{"cpuMilli", "CPUs", 1000},
                 {"memoryMiB", "MiB", 1},
                 {"pods", "pods", 1}};
    const char *comma = "\nhost        ";
    if (!room)
        return;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (!cJSON_GetObjectItemCaseSensitive(room, parts[i].key))
            continue;
        str_addf(&c->out, "%s%.10g %s", comma,
                 json_number(room, parts[i].key) / parts[i].each,
                 parts[i].unit);
        comma = ", ";
    }
    str_add(&c->out, " left");
}

/* What its pods have and it has not. */
static void say_overfull(struct cli *c, const cJSON *pods)
{
    const cJSON *pod;
    cJSON_ArrayForEach(pod, pods)
    {
        cli_line(c, "overfull    %s/%s: %s", json_text(pod, "namespace"),
                 json_text(pod, "name"), json_text(pod, "text"));
    }
}

static void say_node(struct cli *c, const cJSON *node)
{
    const cJSON *slices = cJSON_GetObjectItemCaseSensitive(node, "slices");
    const char *status = json_text(node, "status");
    str_add(&c->out, "node        ");
    text_clean(json_text(node, "name"), &c->out);
    str_add(&c->out, "\nstatus      ");
    text_render(status, status_style(status), c->colours, &c->out);
    str_addf(&c->out, ", heard of %.1f s ago\ngeneration  %.0f of boot ",
             json_number(node, "heardMs") / 1000,
             json_number(node, "generation"));
    text_clean(json_text(node, "bootId"), &c->out);
    str_addf(&c->out, "\nslices      %.0f of %.0f, content ",
             json_number(slices, "present"), json_number(slices, "expected"));
    text_clean(json_text(node, "contentHash"), &c->out);
    say_room(c, cJSON_GetObjectItemCaseSensitive(node, "room"));
    str_add_c(&c->out, '\n');
    say_overfull(c, json_list(node, "overfull"));
    str_add_c(&c->out, '\n');
}

int verb_node(struct cli *c, int argc, char **argv)
{
    cleanup_str struct str path = STR_INIT(4096);
    cleanup_with(json) cJSON *json = NULL;
    (void)argc;
    str_add(&path, "/v1/nodes/");
    cli_add_encoded(&path, argv[0]);
    int rc = cli_get(c, str_text(&path), &json);
    if (rc || !json)
        return rc;
    say_node(c, json);
    cards_render(c, json_list(json, "cardList"));
    str_add_c(&c->out, '\n');
    if (!allocations_render(c, json_list(json, "allocationList")))
        str_add(&c->out, "No pod is on its cards.\n");
    return 0;
}
