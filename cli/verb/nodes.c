/* biga nodes, biga node */
#include <string.h>

#include "cli/base/say.h"
#include "cli/verb/verb.h"
#include "lib/base/mem.h"

static enum table_style status_style(const char *status)
{
    return strcmp(status, "ready") == 0 ? STYLE_GOOD : STYLE_BAD;
}

static void add_of_total(struct table *t, const cJSON *counts, const char *free)
{
    double total = json_number(counts, "total");
    if (total >= 0)
        table_addf(t, "%.0f/%.0f", json_number(counts, free), total);
    else
        table_add(t, "");
}

static void add_node(struct table *t, const cJSON *node)
{
    const cJSON *cards = cJSON_GetObjectItemCaseSensitive(node, "cards");
    const cJSON *gpus = cJSON_GetObjectItemCaseSensitive(node, "gpus");
    const cJSON *nics = cJSON_GetObjectItemCaseSensitive(node, "computeNics");
    const char *status = json_text(node, "status");
    table_add(t, json_text(node, "name"));
    table_add_style(t, status_style(status), status);
    add_of_total(t, cards, "idle");
    add_of_total(t, gpus, "free");
    cli_add_known(t, json_number(node, "allocations"));
    cli_add_known(t, json_number(cards, "drained"));
    add_of_total(t, nics, "free");
    cli_add_known(t, json_number(node, "numas"));
    cli_add_known(t, json_number(cards, "unhealthy"));
    cli_add_known(t, json_number(node, "generation"));
    table_add(t, json_text(node, "bootId"));
}

static const struct listing_column node_columns[] = {
    {"NODE", 0, "its name in Kubernetes, else its host name", NULL},
    {"STATUS", 0,
     "ready; stale: its advertiser is silent; incomplete: not all of its "
     "slices are here; lost or doubtful: see biga trust",
     NULL},
    {"CARDS(FREE/TOTAL)", LISTING_RIGHT, "cards that nobody uses, of all",
     ".cards.idle"},
    {"GPUS(FREE/TOTAL)", LISTING_RIGHT, "GPUs that no pod has, of all",
     ".gpus.free"},
    {"PODS", LISTING_RIGHT, "pods that have cards there", NULL},
    {"DRAINED", LISTING_RIGHT, "cards that were drained", NULL},
    {"NICS(FREE/TOTAL)", LISTING_RIGHT | LISTING_WIDE,
     "compute NICs that no pod has, of all", ".computeNics.free"},
    {"NUMAS", LISTING_RIGHT | LISTING_WIDE, "NUMA nodes", NULL},
    {"UNHEALTHY", LISTING_RIGHT | LISTING_WIDE, "cards out of order", NULL},
    {"GENERATION", LISTING_RIGHT | LISTING_WIDE,
     "how often its topology was published since it booted", NULL},
    {"BOOT", LISTING_WIDE, "the boot that its advertiser tells of", NULL},
};
const struct listing nodes_listing = {
    .columns = node_columns,
    .n_columns = ARRAY_LEN(node_columns),
    .add = add_node,
    .none = "No node has published its topology: start biga-advertiser on the "
            "nodes.\n",
};

int verb_nodes(struct cli *c, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return listing_get(c, "/v1/nodes?limit=100000", &nodes_listing);
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

static void say_drain(struct cli *c, const cJSON *drain)
{
    const char *by = json_text(drain, "by");
    if (!drain)
        return;
    str_add(&c->out, "\ndrained     since ");
    text_clean(json_text(drain, "since"), &c->out);
    if (*by)
        str_add(&c->out, " by ");
    text_clean(by, &c->out);
    str_add(&c->out, ": ");
    text_clean(json_text(drain, "reason"), &c->out);
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
    say_drain(c, cJSON_GetObjectItemCaseSensitive(node, "drain"));
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
    if (!listing_table(c, json_list(json, "cardList"), &cards_listing))
        str_add(&c->out, cards_listing.none);
    str_add_c(&c->out, '\n');
    if (!listing_table(c, json_list(json, "allocationList"),
                       &allocations_listing))
        str_add(&c->out, "No pod is on its cards.\n");
    return 0;
}
