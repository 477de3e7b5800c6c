/* biga card, biga pods: what is on this host and its cards. */
#include <stdlib.h>
#include <string.h>

#include "cli/base/age.h"
#include "cli/base/host_socket.h"
#include "cli/base/say.h"
#include "cli/base/settings.h"
#include "cli/verb/card.h"
#include "cli/verb/logs.h"
#include "cli/verb/verb.h"
#include "lib/base/mem.h"
#include "lib/base/text.h"

enum { EXEC_ARGS_MAX = 256 };

/* --- pods ----------------------------------------------------------------- */

static enum table_style pod_style(const cJSON *pod)
{
    const char *state = json_text(pod, "state");
    return strcmp(state, "failed") == 0    ? STYLE_BAD
           : json_true(pod, "stale")       ? STYLE_BAD
           : strcmp(state, "running") == 0 ? STYLE_GOOD
           : strcmp(state, "gone") == 0    ? STYLE_DIM
                                           : STYLE_FAIR;
}

static double count_restarts(const cJSON *containers)
{
    const cJSON *x;
    double n = 0;
    cJSON_ArrayForEach(x, containers)
    {
        n += json_number(x, "restarts");
    }
    return n;
}

static void add_pod(struct table *t, const cJSON *pod)
{
    const char *pci = json_text(pod, "pci");
    cleanup_str struct str state = STR_INIT(128);
    str_add(&state, json_text(pod, "state"));
    if (json_true(pod, "stale"))
        str_add(&state, " (stale)");
    else if (json_true(pod, "held"))
        str_add(&state, " (held)");
    table_addf(t, "%s/%s", json_text(pod, "namespace"), json_text(pod, "name"));
    table_add(t, *pci ? pci : json_text(pod, "place"));
    table_add_style(t, pod_style(pod), str_text(&state));
    table_add(t, json_true(pod, "ready") ? "yes" : "no");
    cli_add_known(t, json_number(pod, "attempt"));
    cli_add_known(t, count_restarts(json_list(pod, "containers")));
    table_add(t, json_text(pod, "owner"));
    table_add(t, json_text(pod, "reason"));
    table_add(t, json_text(pod, "message"));
}

static const struct listing_column host_pod_columns[] = {
    {"POD", 0, "NAMESPACE/POD", NULL},
    {"PLACE", 0, "the PCI address of the card that it is on, or host", NULL},
    {"STATE", 0,
     "as in biga ps; stale: its place does not answer; held: it waits there",
     NULL},
    {"READY", 0, "yes when all its containers run", NULL},
    {"ATTEMPT", LISTING_RIGHT, "how often it was begun", NULL},
    {"RESTARTS", LISTING_RIGHT, "of its containers", NULL},
    {"WANTED-BY", 0, "who asked for it: extender or socket", NULL},
    {"REASON", 0, "a word for why it is in that state", NULL},
    {"MESSAGE", 0, "what to do next", NULL},
};
const struct listing host_pods_listing = {
    .columns = host_pod_columns,
    .n_columns = ARRAY_LEN(host_pod_columns),
    .add = add_pod,
    .none = "No pod is on this host or its cards.\n",
};

/* Only those of the place (NULL: all) and the namespace (NULL: all). */
static void choose_pods(cJSON *list, const char *place, const char *namespace)
{
    for (cJSON *pod = list->child, *next; pod; pod = next) {
        next = pod->next;
        if ((place && strcmp(json_text(pod, "place"), place) != 0) ||
            (namespace && strcmp(json_text(pod, "namespace"), namespace) != 0))
            cJSON_Delete(cJSON_DetachItemViaPointer(list, pod));
    }
}

/* Cards are called by their addresses. */
static void add_addresses(cJSON *pods, const cJSON *cards)
{
    cJSON *pod;
    const cJSON *card;
    cJSON_ArrayForEach(pod, pods)
    {
        cJSON_ArrayForEach(card, cards)
        {
            const char *pci = json_text(card, "pci");
            if (*pci &&
                strcmp(json_text(card, "name"), json_text(pod, "place")) == 0)
                (void)cJSON_AddStringToObject(pod, "pci", pci);
        }
    }
}

/* The name of a card (or "host") that is meant by its name or PCI address. */
static int find_card(struct host_socket *l, const char *card, struct str *name)
{
    cleanup_with(json) cJSON *json = NULL;
    cleanup_str struct str known = STR_INIT(4096);
    const cJSON *x, *list;
    int rc = host_socket_ask(l, "GET", "/v1/cards", NULL, 0, &json);
    list = rc == 0 ? json_list(json, "items") : NULL;
    cJSON_ArrayForEach(x, list)
    {
        str_addf(&known, "%s%s", known.size ? ", " : "", json_text(x, "name"));
        if (name->size == 0 && (strcmp(json_text(x, "name"), card) == 0 ||
                                strcmp(json_text(x, "pci"), card) == 0))
            str_add(name, json_text(x, "name"));
    }
    if (rc == 0 && name->size == 0) {
        cleanup_str struct str line = STR_INIT(8192), clean = STR_INIT(8192);
        str_addf(&line, "there is no card \"%s\" here; there is %s", card,
                 known.size ? str_text(&known) : "none");
        text_clean(str_text(&line), &clean);
        rc = cli_fail("%s", str_text(&clean));
    }
    return rc;
}

/* What is on this host (card NULL), or on one card. */
static int show_pods(struct cli *c, const char *card)
{
    struct host_socket l;
    cleanup_with(json) cJSON *json = NULL, *cards = NULL;
    cleanup_str struct str place = STR_INIT(1024);
    struct listing listing = host_pods_listing;
    const bool as_json = c->set.json;
    int rc = host_socket_open(c, &l);
    if (rc)
        return rc;
    c->set.json = false; /* what is asked is for us */
    if (card)
        rc = find_card(&l, card, &place);
    if (rc == 0)
        rc = host_socket_ask(&l, "GET", "/v1/pods", NULL, 0, &json);
    if (rc == 0)
        rc = host_socket_ask(&l, "GET", "/v1/cards", NULL, 0, &cards);
    c->set.json = as_json;
    host_socket_close(&l);
    if (rc)
        return rc;
    cJSON *list = cJSON_GetObjectItemCaseSensitive(json, "items");
    cleanup_free char *none = xasprintf("No pod is on %s.\n", str_text(&place));
    choose_pods(list, card ? str_text(&place) : NULL, cli_namespace(c));
    add_addresses(list, json_list(cards, "items"));
    if (card)
        listing.none = none;
    return listing_show(c, json, &listing);
}

int verb_pods(struct cli *c, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return show_pods(c, NULL);
}

/* --- cards ---------------------------------------------------------------- */

static enum table_style health_style(const char *health)
{
    return strcmp(health, "ready") == 0  ? STYLE_GOOD
           : strcmp(health, "lost") == 0 ? STYLE_BAD
                                         : STYLE_FAIR;
}

static void add_card(struct table *t, const cJSON *card)
{
    const char *health = json_text(card, "health");
    const char *pci = json_text(card, "pci");
    bool both = json_true(card, "drained") && strcmp(health, "drained") != 0;
    cleanup_str struct str text = STR_INIT(128);
    str_addf(&text, "%s%s", health, both ? ", drained" : "");
    table_add(t, *pci ? pci : json_text(card, "name"));
    table_add_style(t, health_style(health), str_text(&text));
    age_add_seconds(t, json_number(card, "sinceMs") / 1000);
    cli_add_known(t, json_number(card, "pods"));
    table_add(t, json_text(card, "endpoint"));
    table_add(t, json_text(card, "runtime"));
    table_add(t, json_text(card, "reason"));
    table_add(t, json_text(card, "name"));
    table_add(t, json_text(card, "model"));
    table_add(t, json_text(card, "serial"));
}

static const struct listing_column place_columns[] = {
    {"CARD", 0, "its PCI address; host: the host's own runtime", NULL},
    {"HEALTH", 0, "ready, suspect, lost or drained", NULL},
    {"FOR", LISTING_RIGHT | LISTING_AGES, "how long it has been so",
     ".sinceMs"},
    {"PODS", LISTING_RIGHT, "pods that are there", NULL},
    {"ENDPOINT", 0, "where its container runtime listens", NULL},
    {"RUNTIME", 0, "its name and version", NULL},
    {"REASON", 0, "why it is not ready", NULL},
    {"ID", LISTING_WIDE, "its name in ResourceSlices", NULL},
    {"MODEL", LISTING_WIDE, "as the node or the card file tells", NULL},
    {"SERIAL", LISTING_WIDE, "its serial number", NULL},
};
const struct listing places_listing = {
    .columns = place_columns,
    .n_columns = ARRAY_LEN(place_columns),
    .add = add_card,
    .none = "There is no card with an endpoint: see --card-file of "
            "biga-advertiser.\n",
};

/* One question, as host_socket_ask(). */
static int ask(struct cli *c, const char *method, const char *path,
               cJSON **ret_json)
{
    struct host_socket l;
    int rc = host_socket_open(c, &l);
    if (rc)
        return rc;
    rc = host_socket_ask(&l, method, path, NULL, 0, ret_json);
    host_socket_close(&l);
    return rc;
}

static int verb_card_ps(struct cli *c, int argc, char **argv)
{
    cleanup_with(json) cJSON *json = NULL;
    const bool as_json = c->set.json;
    if (argc)
        return show_pods(c, argv[0]);
    c->set.json = false; /* what is asked is for us */
    int rc = ask(c, "GET", "/v1/cards", &json);
    c->set.json = as_json;
    return rc ? rc : listing_show(c, json, &places_listing);
}

static int card_drain(struct cli *c, const char *card, bool drain)
{
    cleanup_with(json) cJSON *json = NULL;
    cleanup_str struct str path = STR_INIT(4096);
    host_socket_card_path(card, drain ? "/drain" : "/undrain", &path);
    int rc = ask(c, "POST", str_text(&path), &json);
    if (rc == 0 && json) {
        double n = json_number(json, "pods");
        const char *pci = json_text(json, "pci");
        text_clean(*pci ? pci : json_text(json, "name"), &c->out);
        if (drain && n > 0)
            str_addf(&c->out,
                     " is drained: nothing new comes, %.0f pod%s there.\n", n,
                     n == 1 ? " stays" : "s stay");
        else
            str_add(&c->out, drain ? " is drained: nothing new comes, and "
                                     "nothing runs there.\n"
                                   : " takes pods again.\n");
    }
    return rc;
}

static void add_object(struct table *t, const cJSON *object)
{
    const char *id = json_text(object, "id"), *pod = json_text(object, "pod");
    table_addf(t, "%.13s", id);
    table_add(t, json_text(object, "kind"));
    table_addf(t, "%s%s%s", json_text(object, "namespace"), *pod ? "/" : "",
               pod);
    table_add(t, json_text(object, "container"));
    cli_add_known(t, json_number(object, "attempt"));
    table_add(t, json_text(object, "state"));
    if (json_true(object, "known"))
        table_add(t, "this node");
    else if (json_true(object, "ours"))
        table_add_style(t, STYLE_FAIR, "this node, not wanted");
    else
        table_add_style(t, STYLE_DIM, "somebody else");
}

static int verb_card_objects(struct cli *c, int argc, char **argv)
{
    static const struct table_column columns[] = {
        {"ID", false},        {"KIND", false},   {"POD", false},
        {"CONTAINER", false}, {"ATTEMPT", true}, {"STATE", false},
        {"OF", false},
    };
    cleanup_with(json) cJSON *json = NULL;
    cleanup_str struct str path = STR_INIT(4096);
    cleanup_table struct table t;
    (void)argc;
    table_init_columns(&t, columns, ARRAY_LEN(columns));
    host_socket_card_path(argv[0], "/objects", &path);
    int rc = ask(c, "GET", str_text(&path), &json);
    if (rc == 0 && json) {
        cli_add_rows(&t, json_list(json, "items"), add_object);
        cli_write_rows(c, &t, "Nothing is on that card.\n");
    }
    return rc;
}

static int verb_card_drain(struct cli *c, int argc, char **argv)
{
    (void)argc;
    return card_drain(c, argv[0], true);
}

static int verb_card_undrain(struct cli *c, int argc, char **argv)
{
    (void)argc;
    return card_drain(c, argv[0], false);
}

static int verb_card_logs(struct cli *c, int argc, char **argv)
{
    (void)argc;
    return show_logs(c, argv[1], argv[0]);
}

static int verb_card_exec(struct cli *c, int argc, char **argv)
{
    return run_command(c, argv[1], argv[0], argc - 2, argv + 2);
}

static const struct card_command {
    const char *name, *args;
    int args_min, args_max;
    verb_f *run;
    const char *options;
    int named; /* the argument that is a pod's name; 0: none is */
} commands[] = {
    {"ps", "", 0, 0, verb_card_ps, VERB_LOCAL VERB_LIST, 0},
    {"ps", " [CARD]", 1, 1, verb_card_ps, VERB_LOCAL VERB_LIST_NAMED, 0},
    {"show", " CARD", 1, 1, verb_card_show, VERB_LOCAL VERB_FORM, 0},
    {"drain", " CARD", 1, 1, verb_card_drain, VERB_LOCAL VERB_FORM, 0},
    {"undrain", " CARD", 1, 1, verb_card_undrain, VERB_LOCAL VERB_FORM, 0},
    {"flash", " CARD --bfb FILE", 1, 1, verb_card_flash,
     VERB_LOCAL VERB_FORM " bfb sha256 expect timeout force", 0},
    {"objects", " CARD", 1, 1, verb_card_objects, VERB_LOCAL VERB_FORM, 0},
    {"logs", " CARD [NAMESPACE/]POD", 2, 2, verb_card_logs,
     VERB_LOCAL " namespace container follow limit-bytes", 2},
    {"exec", " CARD [NAMESPACE/]POD -- COMMAND…", 3, EXEC_ARGS_MAX,
     verb_card_exec, VERB_LOCAL VERB_FORM " namespace container exec-timeout",
     2},
};

const char *card_command(size_t i)
{
    return i < ARRAY_LEN(commands) ? commands[i].name : NULL;
}

int verb_card(struct cli *c, int argc, char **argv)
{
    const char *usage = NULL;
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        int n = argc - 1;
        if (strcmp(commands[i].name, argv[0]) != 0)
            continue;
        usage = commands[i].args;
        if (n < commands[i].args_min || n > commands[i].args_max)
            continue;
        cleanup_free char *what = xasprintf("card %s", argv[0]);
        int rc = options_check(c, what, commands[i].options);
        if (rc == 0 && commands[i].named)
            rc = cli_qualify(c, what, &argv[commands[i].named]);
        return rc ? rc : commands[i].run(c, n, argv + 1);
    }
    if (usage)
        return cli_usage("usage: biga card %s%s", argv[0], usage);
    const char *words[ARRAY_LEN(commands) + 1] = {NULL};
    for (size_t i = 0, n = 0; i < ARRAY_LEN(commands); i++)
        if (n == 0 || strcmp(commands[i].name, words[n - 1]) != 0)
            words[n++] = commands[i].name;
    return cli_usage_word("card", argv[0], words);
}
