/* Labels of Kubernetes nodes, as `kubectl get nodes -o json` lists them.
 *
 * A switch is told by the whole path of values above it, so that leaf "1" of
 * spine "a" is another than leaf "1" of spine "b".  Where a node has a value
 * for a tier but none for a tier below, it gets a switch of its own on the
 * lower tier: it shares only the tiers above with other nodes. */
#include <string.h>

#include "lib/base/jrow.h"
#include "model/fabric/fabric_private.h"

enum { PATH_MAX_BYTES = (FABRIC_NAME_MAX + 2) * (FABRIC_TIERS_MAX + 1) };

/* One of the keys of a tier. */
struct label_key {
    const char *text;
    size_t size;
    unsigned tier;
};

struct labels_reader {
    const struct fabric_source *source;
    struct fabric_graph *g;
    struct error *err;
    struct jscan s;
    struct label_key keys[FABRIC_KEYS_MAX * 4];
    size_t n_keys;
    unsigned n_tiers;
    size_t n_found; /* hosts with at least one of the labels */
    bool has_items;
    int rc;

    /* of the present node */
    struct jtext name;
    struct jtext values[FABRIC_TIERS_MAX];
    size_t at;
};

static void split_keys(struct labels_reader *r,
                       const struct fabric_labels *labels)
{
    r->n_keys = 0;
    r->n_tiers = labels->n_keys;
    for (unsigned t = 0; t < labels->n_keys; t++) {
        for (const char *p = labels->keys[t]; *p;) {
            size_t size = strcspn(p, "|");
            if (size && r->n_keys < ARRAY_LEN(r->keys))
                r->keys[r->n_keys++] = (struct label_key){p, size, t};
            p += size;
            p += *p == '|';
        }
    }
}

static int labels_fail(struct labels_reader *r)
{
    return error_wrap(r->err, "%s:%zu", r->source->name,
                      fabric_line(r->source, r->at));
}

/* --- one node ----------------------------------------------------------- */

static void read_labels(struct jscan *s, void *to)
{
    struct labels_reader *r = to;
    struct jtext key, value;
    if (!jscan_object(s))
        return;
    while (jscan_member(s, &key) && jscan_string(s, &value)) {
        for (size_t i = 0; i < r->n_keys; i++) {
            const struct label_key *k = &r->keys[i];
            if (key.size == k->size && !key.escaped &&
                memcmp(key.data, k->text, k->size) == 0 &&
                r->values[k->tier].size == 0)
                r->values[k->tier] = value;
        }
    }
}

static int value_decode(struct labels_reader *r, const struct jtext *value,
                        char text[FABRIC_NAME_MAX + 1])
{
    if (value->size > FABRIC_NAME_MAX) {
        (void)error_set(r->err, EINVAL,
                        "a label's value has %zu bytes, at most %d allowed",
                        value->size, FABRIC_NAME_MAX);
        return labels_fail(r);
    }
    (void)jtext_decode(value, text);
    if (strpbrk(text, "/?")) {
        (void)error_set(r->err, EINVAL,
                        "a label's value is \"%.64s\", must have neither '/' "
                        "nor '?'",
                        text);
        return labels_fail(r);
    }
    return 0;
}

struct path {
    char ids[FABRIC_TIERS_MAX][FABRIC_NAME_MAX + FABRIC_TIERS_MAX + 1];
    const char *names[FABRIC_TIERS_MAX];
    unsigned n; /* tiers up to the highest that is known */
};

/* What each tier of the present node is called; "?…" where that is not said. */
static int read_path(struct labels_reader *r, const char *host,
                     struct path *path)
{
    char text[FABRIC_NAME_MAX + 1];
    const char *below = host, *name = host;
    path->n = 0;
    for (unsigned t = 0; t < r->n_tiers; t++)
        if (r->values[t].size)
            path->n = t + 1;
    for (unsigned t = 0; t < path->n; t++) {
        if (r->values[t].size) {
            if (value_decode(r, &r->values[t], text) < 0)
                return -EINVAL;
            (void)snprintf(path->ids[t], sizeof path->ids[t], "%s", text);
            name = path->ids[t];
        } else {
            (void)snprintf(path->ids[t], sizeof path->ids[t], "?%.*s",
                           FABRIC_NAME_MAX + FABRIC_TIERS_MAX - 1, below);
        }
        path->names[t] = name;
        below = path->ids[t];
    }
    return 0;
}

/* The switches of a path, from the top, and links between them.  Returns the
 * leaf. */
static int put_path(struct labels_reader *r, const struct path *path)
{
    char key[PATH_MAX_BYTES];
    size_t size = 0;
    int above = -1;
    for (unsigned t = path->n; t-- > 0;) {
        key[0] = (char)('0' + t);
        size = size ? size : 1;
        size += (size_t)snprintf(key + size, sizeof key - size, "/%s",
                                 path->ids[t]);
        bool is_new = fabric_graph_find(r->g, key, size) < 0;
        int at = fabric_graph_switch(r->g, key, size, path->names[t], r->err);
        if (at < 0 || (above >= 0 && is_new &&
                       fabric_graph_link(r->g, (uint32_t)above, (uint32_t)at,
                                         r->err) < 0))
            return labels_fail(r);
        r->g->switches[at].level = (int)t;
        above = at;
    }
    return above;
}

static int put_node(struct labels_reader *r)
{
    char host[FABRIC_NAME_MAX + 1];
    struct path path;
    bool known = false;
    for (unsigned t = 0; t < r->n_tiers; t++)
        known = known || r->values[t].size;
    if (!known)
        return 0;
    if (r->name.size == 0 || r->name.size > FABRIC_NAME_MAX) {
        (void)error_set(r->err, EINVAL,
                        "metadata.name has %zu bytes, must have 1 to %d",
                        r->name.size, FABRIC_NAME_MAX);
        return labels_fail(r);
    }
    (void)jtext_decode(&r->name, host);
    int rc = read_path(r, host, &path);
    int leaf = rc < 0 ? rc : put_path(r, &path);
    if (leaf < 0)
        return leaf;
    int number = fabric_graph_host(r->g, host, strlen(host), r->err);
    if (number < 0)
        return labels_fail(r);
    r->n_found++;
    struct fabric_plug plug = {.host = (uint32_t)number, .at = (uint32_t)leaf};
    return fabric_graph_plug(r->g, &plug, r->err) < 0 ? labels_fail(r) : 0;
}

static void read_node(struct labels_reader *r)
{
    static const struct jrow metadata_rows[] = {
        JROW("name", JROW_STRICT, jrow_text, struct labels_reader, name),
        JROW_CALL("labels", JROW_NULLABLE, JKIND_OBJECT, read_labels),
        JROW_END,
    };
    static const struct jrow rows[] = {
        JROW_OBJECT("metadata", JROW_STRICT, metadata_rows),
        JROW_END,
    };
    memset(&r->name, 0, sizeof r->name);
    memset(r->values, 0, sizeof r->values);
    r->at = jscan_offset(&r->s);
    if (jrow_read(&r->s, JROW_STRICT, rows, r)) /* else told at the end */
        r->rc = put_node(r);
}

/* --- the list ----------------------------------------------------------- */

static void read_items(struct jscan *s, void *to)
{
    struct labels_reader *r = to;
    r->has_items = true;
    if (!jscan_array(s))
        return;
    while (r->rc == 0 && jscan_element(s))
        read_node(r);
    if (r->rc < 0)
        jscan_fail(s, "refused", r->at);
}

static int read_list(struct labels_reader *r)
{
    static const struct jrow rows[] = {
        JROW_CALL("items", JROW_STRICT, JKIND_ARRAY, read_items),
        JROW_END,
    };
    r->has_items = false;
    jscan_init(&r->s, r->source->text, r->source->size);
    (void)jrow_read(&r->s, JROW_STRICT, rows, r); /* a fault sticks */
    if (r->rc < 0)
        return r->rc;
    if (!jscan_end(&r->s)) {
        (void)jscan_error(&r->s, r->err);
        return error_wrap(r->err, "%s", r->source->name);
    }
    if (!r->has_items)
        return error_set(r->err, EINVAL,
                         "%s:1: items: required member missing from a list of "
                         "nodes",
                         r->source->name);
    return 0;
}

int fabric_read_labels(const struct fabric_source *source,
                       const struct fabric_labels *labels,
                       struct fabric_graph *g, struct error *err)
{
    struct labels_reader r = {.source = source, .g = g, .err = err};
    struct fabric_labels preset;
    if (labels && labels->n_keys) {
        split_keys(&r, labels);
        return read_list(&r);
    }
    int rc = 0;
    for (size_t i = 0;
         rc == 0 && r.n_found == 0 && fabric_labels_preset(i, &preset); i++) {
        split_keys(&r, &preset);
        rc = read_list(&r);
    }
    return rc;
}
