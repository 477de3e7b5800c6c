#include "extender/leader/drain_entry.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/jwrite.h"

int drain_entry_key(const char *node, const char *card,
                    char ret_key[DRAIN_KEY_MAX + 1], struct error *err)
{
    int n = snprintf(ret_key, DRAIN_KEY_MAX + 1, "%s%s%s", node,
                     *card ? "_" : "", card);
    if (n <= DRAIN_KEY_MAX)
        return 0;
    return error_set(err, EINVAL,
                     "the names of node and card have %d bytes, %d are the "
                     "most that a ConfigMap takes: drain the whole node",
                     n, DRAIN_KEY_MAX);
}

void drain_entry_write(const struct card_bar *drain, struct str *out)
{
    jwrite_object(out, NULL);
    jwrite_text(out, "reason", drain->reason);
    jwrite_text(out, "since", drain->since);
    jwrite_known_text(out, "by", drain->by);
    jwrite_bool(out, "evict", drain->evict);
    jwrite_end_object(out);
}

/* Of a JSON pointer (RFC 6901): the node is as somebody wrote it. */
static void add_escaped(const char *key, struct str *out)
{
    for (const char *p = key; *p; p++) {
        if (*p == '~' || *p == '/')
            str_add(out, *p == '~' ? "~0" : "~1");
        else
            str_add_c(out, *p);
    }
}

int drain_entry_remove(const char *node, const struct card_bar *drain,
                       struct str *out, struct error *err)
{
    cleanup_str struct str path = STR_INIT(DRAIN_TEXT_MAX);
    char key[DRAIN_KEY_MAX + 1];
    int e = drain_entry_key(node, drain->card, key, err);
    if (e < 0)
        return e;
    str_add(&path, "/data/");
    add_escaped(key, &path);
    jwrite_array(out, NULL);
    jwrite_object(out, NULL);
    jwrite_text(out, "op", "remove");
    jwrite_text(out, "path", str_text(&path));
    jwrite_end_object(out);
    jwrite_end_array(out);
    return 0;
}

int drain_entry_patch(const char *node, const struct card_bar *drain,
                      struct str *out, struct error *err)
{
    cleanup_str struct str text = STR_INIT(DRAIN_TEXT_MAX);
    char key[DRAIN_KEY_MAX + 1];
    int e = drain_entry_key(node, drain->card, key, err);
    if (e < 0)
        return e;
    drain_entry_write(drain, &text);
    jwrite_object(out, NULL);
    jwrite_object(out, "data");
    jwrite_text(out, key, str_text(&text));
    jwrite_end_object(out);
    jwrite_end_object(out);
    return 0;
}

int drain_entry_read_key(const char *key, char ret_node[DEMAND_NAME_MAX + 1],
                         char ret_card[TOPO_ID_MAX + 1], struct error *err)
{
    size_t node = strcspn(key, "_"), size = strlen(key);
    const char *card = node < size ? key + node + 1 : "";
    if (node == 0 || node > DEMAND_NAME_MAX || strlen(card) > TOPO_ID_MAX ||
        (node < size && !*card))
        return error_set(err, EINVAL, "\"%.64s\": must be NODE or NODE_CARD",
                         key);
    memcpy(ret_node, key, node);
    ret_node[node] = '\0';
    memcpy(ret_card, card, strlen(card) + 1);
    return 0;
}

int drain_entry_read(const char *json, size_t size, struct card_bar *drain,
                     struct error *err)
{
    cleanup_with(json) cJSON *object = NULL;
    struct reader r;
    int e = json_parse(json, size, &object, err);
    if (e < 0)
        return e;
    reader_init(&r, object, "", err);
    const char *reason = reader_string(&r, "reason", CARD_DRAIN_REASON_MAX);
    const char *since = reader_opt_string(&r, "since", CARD_DRAIN_SINCE_MAX);
    const char *by = reader_opt_string(&r, "by", CARD_DRAIN_BY_MAX);
    bool evict = reader_opt_bool(&r, "evict", false);
    e = reader_finish_lenient(&r);
    if (e == 0)
        e = card_drain_check(reason, by ? by : "", err);
    if (e < 0)
        return e;
    drain->drains = true;
    drain->evict = evict;
    (void)snprintf(drain->reason, sizeof drain->reason, "%s", reason);
    (void)snprintf(drain->since, sizeof drain->since, "%s",
                   since ? since : "?");
    (void)snprintf(drain->by, sizeof drain->by, "%s", by ? by : "");
    card_drain_explain(drain);
    return 0;
}
