/* biga allocations */
#include <string.h>

#include "cli/verb/verb.h"
#include "lib/base/mem.h"

static enum table_style state_style(const cJSON *a)
{
    return json_true(a, "ready")                          ? STYLE_GOOD
           : strcmp(json_text(a, "state"), "failed") == 0 ? STYLE_BAD
                                                          : STYLE_FAIR;
}

static void add_allocation(struct table *t, const cJSON *a)
{
    const cJSON *pod = cJSON_GetObjectItemCaseSensitive(a, "pod");
    const char *relation = cli_relation(a);
    table_addf(t, "%s/%s", json_text(pod, "namespace"), json_text(pod, "name"));
    if (json_true(a, "held"))
        table_add_style(t, STYLE_FAIR, "held"); /* nobody is bound there */
    else
        table_add(t, json_text(pod, "role"));
    table_add(t, json_text(a, "node"));
    cli_add_devices(t, json_list(a, "cards"));
    cli_add_devices(t, json_list(a, "gpus"));
    cli_add_known(t, json_number(a, "numa"));
    table_add_style(t, relation_style(relation), relation);
    achieved_add(t, a);
    table_add_style(t, state_style(a), json_text(a, "state"));
    table_add(t, json_text(a, "reason"));
    cli_add_devices(t, json_list(a, "nics"));
    table_add(t, json_text(pod, "job"));
    cli_add_known(t, *json_text(pod, "job") ? json_number(pod, "pair") : -1);
}

/* Which of them have less than they were promised. */
static void say_lost(struct cli *c, const cJSON *list)
{
    const cJSON *a;
    cJSON_ArrayForEach(a, list)
    {
        const cJSON *pod = cJSON_GetObjectItemCaseSensitive(a, "pod");
        cleanup_free char *name = xasprintf(
            "pod %s/%s", json_text(pod, "namespace"), json_text(pod, "name"));
        achieved_line(c, name, a);
    }
}

static const struct listing_column allocation_columns[] = {
    {"POD", 0, "NAMESPACE/POD; JOB/RANK of a place that is held for a pair",
     NULL},
    {"ROLE", 0, "host, xpu or service; held: nobody is bound there yet", NULL},
    {"NODE", 0, "where it is", NULL},
    {"CARD", 0, "PCI addresses of its cards", NULL},
    {"GPU", 0, "PCI addresses of its GPUs", NULL},
    {"NUMA", LISTING_RIGHT, "the NUMA node of the host that all are next to",
     NULL},
    {"RELATION", 0,
     "how close its card and GPU are: PIX, PXB, PHB, NODE, SOCKET or SYS",
     NULL},
    {"ACHIEVED", 0,
     "what it really got of that, as its node tells; lost: less than "
     "promised",
     NULL},
    {"STATE", 0, "of a pod that Biga runs, as in biga ps", NULL},
    {"REASON", 0, "why it is in that state", NULL},
    {"NIC", LISTING_WIDE, "PCI addresses of its compute NICs", NULL},
    {"JOB", LISTING_WIDE, "the job that it is of", NULL},
    {"PAIR", LISTING_RIGHT | LISTING_WIDE, "its rank in that job", NULL},
};
const struct listing allocations_listing = {
    .columns = allocation_columns,
    .n_columns = ARRAY_LEN(allocation_columns),
    .add = add_allocation,
    .none = "No pod has a card: nothing was bound yet.\n",
    .below = say_lost,
};

int verb_allocations(struct cli *c, int argc, char **argv)
{
    cleanup_str struct str path = STR_INIT(4096);
    (void)argc;
    (void)argv;
    str_add(&path, "/v1/allocations?limit=100000");
    cli_add_query(&path, "namespace", cli_namespace(c));
    return listing_get(c, str_text(&path), &allocations_listing);
}
