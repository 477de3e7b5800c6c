/* Nodes and their cards. */
#include <string.h>

#include "extender/history/history_db.h"
#include "extender/history/history_record_private.h"
#include "lib/base/jscan.h"
#include "lib/base/jwrite.h"

enum { LINE_MAX_SIZE = 4096, CARDS_SIZE_MAX = 1 << 20 };

/* --- cards ---------------------------------------------------------------- */

static const char *card_state_word(const struct device *d)
{
    if (d->barred[0] || (d->unhealthy && strcmp(d->health, "drained") == 0))
        return "drained";
    return d->unhealthy ? "lost" : "ready";
}

static void card_line(const struct device *d, struct str *out)
{
    char pci[PCI_ADDR_TEXT_MAX];
    pci_addr_format(&d->pci, pci);
    jwrite_object(out, NULL);
    jwrite_text(out, "id", d->has_pci ? pci : d->id);
    jwrite_text(out, "state", card_state_word(d));
    jwrite_known_text(out, "why", d->barred);
    jwrite_known_text(out, "model", d->model);
    jwrite_end_object(out);
    str_add_c(out, '\n');
}

void history_record_cards(const struct node *node, struct str *out)
{
    size_t first,
        n = node->topo ? topo_count(node->topo, DEVICE_CARD, &first) : 0;
    for (size_t i = 0; i < n; i++)
        card_line(topo_device(node->topo, first + i), out);
}

/* A text as it stands in a line, with its quotes; false: it is not there. */
static bool find_member(const char *line, const char *key,
                        char ret[LINE_MAX_SIZE])
{
    const char *end = strchr(line, '\n');
    const char *at = strstr(line, key);
    size_t size = 0;
    if (!at || (end && at > end))
        return false;
    at += strlen(key);
    while (at[size] && at[size] != '"' && size < LINE_MAX_SIZE - 1)
        size += at[size] == '\\' && at[size + 1] ? 2 : 1;
    if (size >= LINE_MAX_SIZE || at[size] != '"')
        return false; /* it would be cut, perhaps within an escape */
    memcpy(ret, at, size);
    ret[size] = '\0';
    return true;
}

/* The line of a card in `cards`, or NULL. */
static const char *find_line(const char *cards, const char *line)
{
    size_t size = strcspn(line, ","); /* {"id":"…" */
    for (const char *at = cards; *at; at += strcspn(at, "\n") + 1)
        if (strncmp(at, line, size) == 0 && at[size] == ',')
            return at;
    return NULL;
}

static enum history_reason card_reason(const char *was, const char *is)
{
    if (strcmp(is, "drained") == 0)
        return HISTORY_DRAINED;
    if (strcmp(is, "lost") == 0)
        return HISTORY_LOST;
    return strcmp(was, "drained") == 0 ? HISTORY_UNDRAINED : HISTORY_RECOVERED;
}

static void tell_card(struct record *r, const char *node, const char *line,
                      enum history_reason reason)
{
    char id[LINE_MAX_SIZE] = "", why[LINE_MAX_SIZE] = "";
    char object[HISTORY_OBJECT_MAX + 1], reason_text[LINE_MAX_SIZE];
    (void)find_member(line, "{\"id\":\"", id);
    (void)find_member(line, ",\"why\":\"", why);
    const struct jtext escaped = {why, strlen(why), strchr(why, '\\') != NULL};
    (void)jtext_decode(&escaped, reason_text);
    (void)snprintf(object, sizeof object, "%s/%.*s", node, TOPO_ID_MAX, id);
    record_event(r, &(struct history_event){.kind = HISTORY_CARD,
                                            .reason = reason,
                                            .object = object,
                                            .node = node,
                                            .pair = -1,
                                            .message = reason == HISTORY_DRAINED
                                                           ? reason_text
                                                           : ""});
}

/* `after` has it, and `before` had it or not. */
static void compare_card(struct record *r, const char *node, const char *was,
                         const char *is)
{
    char before[LINE_MAX_SIZE] = "", after[LINE_MAX_SIZE] = "";
    if (!was) {
        tell_card(r, node, is, HISTORY_CARD_ADDED);
        return;
    }
    if (strncmp(was, is, strcspn(is, "\n") + 1) == 0)
        return;
    (void)find_member(was, ",\"state\":\"", before);
    (void)find_member(is, ",\"state\":\"", after);
    if (strcmp(before, after) != 0)
        tell_card(r, node, is, card_reason(before, after));
}

static void compare_cards(struct record *r, const char *node,
                          const char *before, const char *after)
{
    for (const char *is = after; *is; is += strcspn(is, "\n") + 1)
        compare_card(r, node, find_line(before, is), is);
    for (const char *was = before; *was; was += strcspn(was, "\n") + 1)
        if (!find_line(after, was))
            tell_card(r, node, was, HISTORY_CARD_GONE);
}

/* --- nodes ---------------------------------------------------------------- */

static const struct {
    enum history_reason reason;
    const char *text;
} statuses[NODE_STATUSES] = {
    [NODE_READY] = {HISTORY_NODE_READY, ""},
    [NODE_STALE] = {HISTORY_NODE_STALE, "it has not been heard of"},
    [NODE_INCOMPLETE] = {HISTORY_NODE_INCOMPLETE,
                         "not all of its slices are published"},
    [NODE_LOST] = {HISTORY_NODE_LOST,
                   "the cluster says that it is not ready, or deleted"},
    [NODE_DOUBTFUL] = {HISTORY_NODE_DOUBTFUL,
                       "what was given there may have been forgotten"},
};

static void tell_node(struct record *r, const char *node,
                      enum history_reason reason, const char *text)
{
    record_event(r, &(struct history_event){.kind = HISTORY_NODE,
                                            .reason = reason,
                                            .object = node,
                                            .node = node,
                                            .pair = -1,
                                            .message = text});
}

static void put_node(struct record *r, const struct history_node *n)
{
    if (r->result == 0)
        r->result = history_book_node(r->book, n, r->err);
}

void record_node(struct record *r, const struct node *node)
{
    cleanup_str struct str cards = STR_INIT(CARDS_SIZE_MAX);
    const struct history_node *was = history_book_node_now(r->book, node->name);
    history_record_cards(node, &cards);
    if (was && strcmp(was->cards, str_text(&cards)) != 0)
        compare_cards(r, node->name, was->cards, str_text(&cards));
    if (!was || was->status != (int)node->status)
        tell_node(r, node->name, statuses[node->status].reason,
                  statuses[node->status].text);
    put_node(r, &(struct history_node){node->name, (int)node->status,
                                       str_text(&cards), r->ms});
}

void record_node_gone(struct record *r, const char *name)
{
    tell_node(r, name, HISTORY_NODE_GONE,
              "nothing is published for it any more");
    put_node(r,
             &(struct history_node){name, HISTORY_NODE_GONE_STATUS, "", r->ms});
}
