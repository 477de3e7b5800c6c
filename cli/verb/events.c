/* biga events */
#include <stdlib.h>
#include <string.h>

#include "cli/base/age.h"
#include "cli/base/moment.h"
#include "cli/base/names.h"
#include "cli/base/output.h"
#include "cli/base/say.h"
#include "cli/base/watch.h"
#include "cli/verb/events.h"
#include "cli/verb/verb.h"
#include "lib/base/mem.h"

/* --- names ---------------------------------------------------------------- */

static int complain_kind(const char *word, size_t size)
{
    static const char *const kinds[] = {"node", "card", "pod", "job", NULL};
    cleanup_free char *kind = xstrndup(word, size);
    cleanup_str struct str meant = STR_INIT(64);
    cli_add_meant(&meant, kind, kinds);
    return cli_usage("\"%s\" is no KIND/NAME: the kind must be node, card, pod "
                     "or job%s",
                     word, str_text(&meant));
}

int history_name_parse(struct cli *c, const char *text,
                       struct history_name *ret)
{
    static const char *const kinds[] = {"node", "card", "pod", "job"};
    size_t size = strcspn(text, "/"), i = 0;
    const char *name = text + size + (text[size] == '/');
    const char *space = cli_namespace(c) ? cli_namespace(c) : "default";
    /* "nodes/…" is meant, too */
    size_t bare = size > 1 && text[size - 1] == 's' ? size - 1 : size;
    while (i < ARRAY_LEN(kinds) &&
           (strncmp(kinds[i], text, bare) != 0 || kinds[i][bare]))
        i++;
    if (i == ARRAY_LEN(kinds))
        return complain_kind(text, size);
    bool spaced = i >= 2, parted = i >= 1;
    const char *slash = strchr(name, '/');
    if (!*name || (!spaced && parted != (slash != NULL)) ||
        (slash && (slash == name || !slash[1] || strchr(slash + 1, '/'))))
        return cli_usage("\"%s\" is no KIND/NAME: must be %s", text,
                         spaced   ? "pod/[NAMESPACE/]NAME or "
                                    "job/[NAMESPACE/]NAME"
                         : parted ? "card/NODE/ADDRESS, as "
                                    "card/host1/0000:17:00.0"
                                  : "node/NAME");
    ret->kind = kinds[i];
    ret->object = spaced && !slash ? xasprintf("%s/%s", space, name)
                                   : xstrdup(name);
    return 0;
}

void history_name_add_query(struct str *path, const struct history_name *n)
{
    const char *slash = strchr(n->object, '/');
    cleanup_free char *first = xstrndup(
        n->object, slash ? (size_t)(slash - n->object) : strlen(n->object));
    if (strcmp(n->kind, "node") == 0) {
        cli_add_query(path, "node", n->object);
        return;
    }
    if (strcmp(n->kind, "job") == 0) {
        cli_add_query(path, "job", n->object);
        return;
    }
    cli_add_query(path, "kind", n->kind);
    cli_add_query(path, *n->kind == 'c' ? "node" : "namespace", first);
    cli_add_query(path, "name", slash + 1);
}

/* --- the list ------------------------------------------------------------- */

static enum table_style reason_style(const char *reason)
{
    static const char *const bad[] = {"Lost",     "Failed",       "NodeStale",
                                      "NodeLost", "NodeDoubtful", "NodeGone",
                                      "CardGone", "Evicted"};
    static const char *const fair[] = {"Refused", "Drained", "Degraded",
                                       "Stopped", "NodeIncomplete"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (strcmp(bad[i], reason) == 0)
            return STYLE_BAD;
    for (size_t i = 0; i < ARRAY_LEN(fair); i++)
        if (strcmp(fair[i], reason) == 0)
            return STYLE_FAIR;
    return STYLE_PLAIN;
}

/* As history_name_parse() reads it. */
static void add_object(struct table *t, const cJSON *e)
{
    const char *kind = json_text(e, "kind"), *node = json_text(e, "node");
    if (strcmp(kind, "node") == 0)
        table_addf(t, "node/%s", node);
    else if (strcmp(kind, "card") == 0)
        table_addf(t, "card/%s/%s", node, json_text(e, "card"));
    else
        table_addf(t, "%s/%s/%s", kind, json_text(e, "namespace"),
                   json_text(e, "name"));
}

static void event_add(struct table *t, const cJSON *e)
{
    const char *reason = json_text(e, "reason"), *last = json_text(e, "last");
    const char *kind = json_text(e, "kind");
    bool placed = strcmp(kind, "pod") == 0 || strcmp(kind, "job") == 0;
    age_add(t, *last ? last : json_text(e, "time"));
    table_add_style(t, reason_style(reason), reason);
    add_object(t, e);
    table_add(t, placed ? json_text(e, "node") : "");
    cli_add_known(t, json_number(e, "count"));
    table_add(t, json_text(e, "message"));
    table_add(t, json_text(e, "time"));
    table_add(t, json_text(e, "job"));
    cli_add_known(t, json_number(e, "pair"));
}

static const struct listing_column event_columns[] = {
    {"AGE", LISTING_AGES, "since it happened; when counted, since the last",
     ".seq"},
    {"REASON", 0,
     "what happened: Planned, Held, Bound, Refused, Started, Ended, Failed, "
     "Released, Lost, Recovered, Drained, Undrained, NodeReady, NodeStale …",
     NULL},
    {"OBJECT", 0, "what it happened to, as biga history takes it", NULL},
    {"NODE", 0, "where that pod was then", NULL},
    {"COUNT", LISTING_RIGHT, "how often: refusals that are alike are counted",
     NULL},
    {"MESSAGE", 0, "why, or what came of it", NULL},
    {"TIME", LISTING_WIDE, "when it happened first", NULL},
    {"JOB", LISTING_WIDE, "the job of that pod", NULL},
    {"PAIR", LISTING_RIGHT | LISTING_WIDE, "its rank in that job", NULL},
};
const struct listing events_listing = {
    .columns = event_columns,
    .n_columns = ARRAY_LEN(event_columns),
    .add = event_add,
    .none = "Nothing of that kind has happened.\n",
};

/* --- as they come --------------------------------------------------------- */

struct watched {
    struct cli *cli;
    const char *query; /* what is asked, without where it begins */
    double last;       /* number of the newest that came */
    struct table widths;
};

static void add_path(void *ctx, struct str *path)
{
    const struct watched *w = ctx;
    str_addf(path, "/v1/events?follow=true&continue=%.0f%s", w->last, w->query);
}

/* Show a list of events that are newer than all before. */
static int show(struct watched *w, cJSON *list)
{
    struct cli *c = w->cli;
    const cJSON *e;
    cJSON_ArrayForEach(e, list)
    {
        if (json_number(e, "seq") > w->last)
            w->last = json_number(e, "seq");
    }
    int rc = listing_choose(c, list);
    if (rc)
        return rc;
    if (!c->set.json)
        listing_more(c, list, &events_listing, &w->widths);
    cJSON_ArrayForEach(e, list)
    {
        cleanup_free char *text = c->set.json ? cJSON_PrintUnformatted(e)
                                              : NULL;
        if (text && c->form == OUTPUT_NAME)
            str_addf(&c->out, "%s\n", text);
        else if (text)
            str_addf(&c->out, "{\"type\":\"ADDED\",\"object\":%s}\n", text);
    }
    return output_finish(c);
}

static int take(struct cli *c, void *ctx, const char *data)
{
    cleanup_with(json) cJSON *list = cJSON_CreateArray(), *event = NULL;
    struct error err = {0};
    (void)c;
    if (json_parse(data, strlen(data), &event, &err))
        return cli_fail("the server's event is no JSON: %s", err.text);
    (void)cJSON_AddItemToArray(list, steal(&event));
    return show(ctx, list);
}

/* Those that there are, oldest first. */
static int show_first(struct watched *w, const char *path)
{
    struct cli *c = w->cli;
    const bool json = c->set.json;
    cleanup_with(json) cJSON *answer = NULL, *list = cJSON_CreateArray();
    c->set.json = false; /* what is asked is for us */
    int rc = cli_get(c, path, &answer);
    c->set.json = json;
    /* when none of the newest is meant: not all of the month comes then */
    w->last = strtod(json_text(answer, "continue"), NULL);
    cJSON *items = cJSON_GetObjectItemCaseSensitive(answer, "items");
    while (rc == 0 && items && items->child)
        (void)cJSON_InsertItemInArray(
            list, 0, cJSON_DetachItemViaPointer(items, items->child));
    return rc ? rc : show(w, list);
}

static int watch(struct cli *c, const char *path, const char *query)
{
    struct watched w = {.cli = c, .query = query};
    const struct watch_stream stream = {add_path, take, &w};
    c->seen = listing_seen_create(); /* documents of YAML are parted */
    int rc = *c->set.until ? cli_usage("--until: cannot be combined with -w")
                           : show_first(&w, path);
    if (rc == 0)
        rc = watch_stream(c, &stream);
    listing_seen_destroy(steal(&c->seen));
    table_fini(&w.widths);
    return rc;
}

/* --- the verb ------------------------------------------------------------- */

/* `name` is filled in when one is given. */
static int add_query(struct cli *c, int argc, char **argv,
                     struct history_name *name, struct str *query)
{
    int rc = argc > 0 ? history_name_parse(c, argv[0], name) : 0;
    if (rc)
        return rc;
    if (argc > 0)
        history_name_add_query(query, name);
    else
        cli_add_query(query, "namespace", cli_namespace(c));
    if (*c->set.reason)
        cli_add_query(query, "reason", c->set.reason);
    rc = moment_add_query(query, "since", "--since", c->set.since);
    return rc ? rc : moment_add_query(query, "until", "--until", c->set.until);
}

int verb_events(struct cli *c, int argc, char **argv)
{
    cleanup_str struct str query = STR_INIT(8192), path = STR_INIT(8192);
    struct history_name name = {0};
    int rc = add_query(c, argc, argv, &name, &query);
    cleanup_free char *object = name.object;
    str_addf(&path, "/v1/events?order=desc&limit=%lld%s",
             (long long)c->set.limit, str_text(&query));
    if (rc)
        return rc;
    if (c->set.watch)
        return watch(c, str_text(&path), str_text(&query));
    rc = listing_get(c, str_text(&path), &events_listing);
    if (rc == 0 && c->nothing && object)
        names_hint(c, name.kind, object);
    return rc;
}
