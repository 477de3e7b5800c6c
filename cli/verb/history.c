/* biga history */
#include "cli/verb/events.h"

#include <string.h>

#include "cli/base/age.h"
#include "cli/base/moment.h"
#include "cli/base/output.h"
#include "cli/base/say.h"
#include "cli/base/watch.h"
#include "cli/verb/verb.h"
#include "lib/base/mem.h"

/* --- who had what --------------------------------------------------------- */

static void add_pod(struct table *t, const cJSON *p)
{
    const char *relation = json_text(p, "relation");
    table_addf(t, "%s/%s", json_text(p, "namespace"), json_text(p, "name"));
    table_add(t, json_text(p, "role"));
    table_add(t, json_text(p, "job"));
    cli_add_known(t, json_number(p, "pair"));
    table_add(t, json_text(p, "node"));
    cli_add_devices(t, json_list(p, "cards"));
    cli_add_devices(t, json_list(p, "gpus"));
    table_add_style(t, relation_style(relation), relation);
    table_add(t, json_text(p, "since"));
    table_add(t, json_text(p, "until"));
}

static const struct listing_column pod_columns[] = {
    {"POD", 0, "NAMESPACE/POD", NULL},
    {"ROLE", 0, "host, xpu or service", NULL},
    {"JOB", 0, "the job that it was of", NULL},
    {"PAIR", LISTING_RIGHT, "its rank in that job", NULL},
    {"NODE", 0, "where it was", NULL},
    {"CARD", 0, "PCI addresses of the cards that it had", NULL},
    {"GPU", 0, "PCI addresses of the GPUs that it had", NULL},
    {"RELATION", 0, "how close its card and GPU were", NULL},
    {"SINCE", 0, "when it got its place", NULL},
    {"UNTIL", 0, "when that was given back; -: it has it still", NULL},
};
const struct listing past_pods_listing = {
    .columns = pod_columns,
    .n_columns = ARRAY_LEN(pod_columns),
    .add = add_pod,
    .none = "",
};

static void add_card(struct table *t, const cJSON *card)
{
    const char *state = json_text(card, "state");
    table_add(t, json_text(card, "id"));
    table_add_style(t, strcmp(state, "ready") == 0 ? STYLE_GOOD : STYLE_BAD,
                    state);
    cli_add_devices(t, json_list(card, "pods"));
    table_add(t, json_text(card, "model"));
    table_add(t, json_text(card, "why"));
}

static const struct listing_column card_columns[] = {
    {"CARD", 0, "its PCI address", NULL},
    {"STATE", 0, "ready, lost or drained", NULL},
    {"PODS", 0, "who had it", NULL},
    {"MODEL", 0, "what it is", NULL},
    {"WHY", 0, "why it was drained", NULL},
};
const struct listing past_cards_listing = {
    .columns = card_columns,
    .n_columns = ARRAY_LEN(card_columns),
    .add = add_card,
    .none = "",
};

/* --- one object ----------------------------------------------------------- */

/* "node host1 at TIME: ready, since TIME" */
static void say_head(struct cli *c, const struct history_name *n,
                     const cJSON *answer)
{
    const cJSON *place = cJSON_GetObjectItemCaseSensitive(answer, "place");
    const cJSON *refused = cJSON_GetObjectItemCaseSensitive(answer, "refused");
    cleanup_str struct str text = STR_INIT(8192);
    const char *status = json_text(answer, "status"),
               *state = json_text(answer, "state");
    if (*state)
        str_addf(&text, "%s, on a node that was %s", state, status);
    else if (*status)
        str_addf(&text, "%s%s%s", status,
                 *json_text(answer, "since") ? " since " : "",
                 json_text(answer, "since"));
    else if (cJSON_IsObject(place))
        str_addf(&text, "on node %s since %s", json_text(place, "node"),
                 json_text(place, "since"));
    else if (cJSON_IsObject(refused))
        str_addf(&text, "no place; refused: %s", json_text(refused, "message"));
    else if (strcmp(n->kind, "pod") == 0)
        str_add(&text, "no place");
    else
        str_addf(&text, "%d pods with a place",
                 cJSON_GetArraySize(json_list(answer, "pods")));
    cli_line(c, "%s %s at %s: %s", n->kind, n->object, json_text(answer, "at"),
             str_text(&text));
}

static void say_list(struct cli *c, const cJSON *list, const struct listing *l)
{
    if (cJSON_GetArraySize(list) == 0)
        return;
    str_add_c(&c->out, '\n');
    (void)listing_table(c, list, l); /* it is not empty */
}

static void say_place(struct cli *c, const cJSON *answer)
{
    const cJSON *place = cJSON_GetObjectItemCaseSensitive(answer, "place");
    if (!cJSON_IsObject(place))
        return;
    str_add_c(&c->out, '\n');
    listing_one(c, place, &past_pods_listing);
}

/* In the order of time, which is that of the answer. */
static void say_events(struct cli *c, const cJSON *answer)
{
    cleanup_with(json) cJSON *list = cJSON_CreateObject();
    const cJSON *events = json_list(answer, "events");
    if (cJSON_GetArraySize(events) == 0)
        return;
    (void)cJSON_AddItemToObject(list, "items", cJSON_Duplicate(events, true));
    str_add_c(&c->out, '\n');
    (void)listing_show(c, list, &events_listing); /* it has the list */
}

/* --- the verb ------------------------------------------------------------- */

struct looking {
    const struct history_name *name;
    const char *path; /* of what it was */
    double newest;    /* number of the last event that was shown */
};

static int look(struct cli *c, struct looking *l)
{
    cleanup_with(json) cJSON *answer = NULL;
    const bool json = c->set.json;
    const cJSON *e;
    c->set.json = false; /* what is asked is for us */
    int rc = cli_get(c, l->path, &answer);
    c->set.json = json;
    if (rc)
        return rc;
    cJSON_ArrayForEach(e, json_list(answer, "events"))
    {
        if (json_number(e, "seq") > l->newest)
            l->newest = json_number(e, "seq");
    }
    if (json) {
        cleanup_free char *text = cJSON_PrintUnformatted(answer);
        str_addf(&c->out, "%s\n", text ? text : "");
        return 0;
    }
    say_head(c, l->name, answer);
    say_place(c, answer);
    say_list(c, json_list(answer, "cards"), &past_cards_listing);
    say_list(c, json_list(answer, "pods"), &past_pods_listing);
    say_events(c, answer);
    return 0;
}

static void add_path(void *ctx, struct str *path)
{
    const struct looking *l = ctx;
    str_addf(path, "/v1/events?follow=true&continue=%.0f", l->newest);
    history_name_add_query(path, l->name);
}

/* Of many that come at once the first look shows all. */
static int take(struct cli *c, void *ctx, const char *data)
{
    struct looking *l = ctx;
    cleanup_with(json) cJSON *event = NULL;
    struct error err = {0};
    if (json_parse(data, strlen(data), &event, &err))
        return cli_fail("the server's event is no JSON: %s", err.text);
    if (json_number(event, "seq") <= l->newest)
        return 0;
    if (!c->set.json)
        str_add_c(&c->out, '\n');
    int rc = look(c, l);
    return rc ? rc : output_finish(c);
}

/* Whenever something happens to it. */
static int watch(struct cli *c, struct looking *l)
{
    const struct watch_stream stream = {add_path, take, l};
    if (*c->set.at)
        return cli_usage("--at: cannot be combined with -w");
    int rc = look(c, l);
    if (rc == 0)
        rc = output_finish(c);
    if (c->set.json)
        c->seen = listing_seen_create(); /* documents of YAML are parted */
    if (rc == 0)
        rc = watch_stream(c, &stream);
    if (c->seen)
        listing_seen_destroy(steal(&c->seen));
    return rc;
}

static void add_object(struct str *path, const struct history_name *n)
{
    const char *slash = strchr(n->object, '/');
    cleanup_free char *first = xstrndup(
        n->object, slash ? (size_t)(slash - n->object) : strlen(n->object));
    str_addf(path, "/v1/history/%s/", n->kind);
    cli_add_encoded(path, first);
    if (slash) {
        str_add_c(path, '/');
        cli_add_encoded(path, slash + 1);
    }
    str_add_c(path, '?');
}

int verb_history(struct cli *c, int argc, char **argv)
{
    cleanup_str struct str path = STR_INIT(8192);
    cleanup_with(json) cJSON *none = NULL; /* it is printed as it comes */
    struct history_name name = {0};
    (void)argc;
    int rc = history_name_parse(c, argv[0], &name);
    if (rc)
        return rc;
    cleanup_free char *object = steal(&name.object);
    name.object = object;
    add_object(&path, &name);
    rc = moment_add_query(&path, "at", "--at", c->set.at);
    struct looking l = {.name = &name, .path = str_text(&path)};
    if (rc == 0)
        rc = c->set.watch  ? watch(c, &l)
             : c->set.json ? cli_get(c, l.path, &none)
                           : look(c, &l);
    return rc;
}
