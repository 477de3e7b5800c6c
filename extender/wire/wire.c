#include "extender/wire/wire.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

enum { KNOWN_POD_MAX = 64 << 10 }; /* larger ones are read again */

/* --- reading ------------------------------------------------------------ */

static int wrong(const struct jscan *s, struct error *err)
{
    return jscan_error(s, err);
}

static int twice(const struct jscan *s, const char *key, struct error *err)
{
    return error_set(err, EINVAL, "%s: given twice (byte %zu)", key,
                     jscan_offset(s));
}

/* Reads the Pod's bytes first, so that the rest of the request is judged
 * even when the pod breaks its contract (-EDOM). */
static int read_pod(struct jscan *s, const struct demand_config *config,
                    struct demand *demand, bool *has_pod, struct error *err)
{
    if (*has_pod)
        return twice(s, "Pod", err);
    struct jscan pod = *s;
    int r = demand_read(&pod, config, demand, err);
    if (r == -EDOM) {
        *has_pod = true;
        return jscan_skip(s) ? -EDOM : wrong(s, err);
    }
    if (r < 0)
        return pod.fault ? r : error_wrap(err, "Pod");
    *s = pod;
    *has_pod = true;
    return 0;
}

/* kube-scheduler sends a pod with each of its calls, filter and prioritize one
 * after the other: the same bytes are the same demand. */
static bool is_known_pod(const struct wire_args *a, const struct jscan *s)
{
    return a->known_size && (size_t)(s->end - s->p) >= a->known_size &&
           memcmp(s->p, a->known_pod, a->known_size) == 0;
}

static void know_pod(struct wire_args *a, const char *from, size_t size)
{
    a->known_size = 0;
    if (size > KNOWN_POD_MAX || *from != '{')
        return;
    if (!a->known_pod)
        a->known_pod = xmalloc(KNOWN_POD_MAX);
    memcpy(a->known_pod, from, size);
    a->known_size = size;
    a->known_demand = a->demand;
}

static int read_args_pod(struct jscan *s, const struct demand_config *config,
                         struct wire_args *a, struct error *err)
{
    const char *from = s->p;
    int r = 0;
    if (!a->has_pod && is_known_pod(a, s)) {
        a->demand = a->known_demand;
        a->has_pod = true;
        s->p += a->known_size;
    } else {
        r = read_pod(s, config, &a->demand, &a->has_pod, err);
        if (r == 0)
            know_pod(a, from, (size_t)(s->p - from));
    }
    a->pod = (struct jtext){.data = from, .size = (size_t)(s->p - from)};
    return r;
}

static void grow_names(struct wire_args *a, size_t n)
{
    if (n < a->names_cap)
        return;
    a->names = xgrow(a->names, n, &a->names_cap, sizeof *a->names);
    a->indexes = xrealloc(a->indexes, a->names_cap, sizeof *a->indexes);
}

static int read_names(struct jscan *s, const struct roster *roster,
                      struct wire_args *a, struct error *err)
{
    struct roster_walk walk;
    size_t n = 0, room, got;
    if (!jscan_array(s))
        return wrong(s, err);
    roster_walk_init(&walk, roster);
    do {
        grow_names(a, n);
        room = a->names_cap - n;
        got = roster_read(&walk, s, a->names + n, a->indexes + n, room);
        n += got;
        if (n > WIRE_NODES_MAX)
            return error_set(err, EINVAL,
                             "NodeNames: more than %d names in one request",
                             WIRE_NODES_MAX);
    } while (got == room && !s->fault);
    a->n = n;
    return s->fault ? wrong(s, err) : 0;
}

/* metadata.name of the Node object in `raw`, which is known to be sound. */
static int node_name(const struct jtext *raw, size_t index,
                     struct jtext *ret_name, struct error *err)
{
    struct jscan s;
    struct jtext key;
    bool found = false;
    jscan_init(&s, raw->data, raw->size);
    if (!jscan_object(&s))
        return error_set(err, EINVAL, "Nodes.items[%zu]: must be an object",
                         index);
    while (jscan_member(&s, &key)) {
        if (!jtext_is(&key, "metadata")) {
            (void)jscan_skip(&s);
            continue;
        }
        if (!jscan_object(&s))
            break;
        while (jscan_member(&s, &key)) {
            if (!jtext_is(&key, "name")) {
                (void)jscan_skip(&s);
            } else if (found) {
                return error_set(err, EINVAL,
                                 "Nodes.items[%zu].metadata.name: given twice",
                                 index);
            } else {
                found = jscan_string(&s, ret_name);
            }
        }
    }
    if (!found)
        return error_set(err, EINVAL,
                         "Nodes.items[%zu].metadata.name: must be a string",
                         index);
    return 0;
}

static int read_items(struct jscan *s, struct wire_args *a, struct error *err)
{
    if (jscan_null(s))
        return 0;
    if (!jscan_array(s))
        return wrong(s, err);
    size_t n = 0;
    while (jscan_element(s)) {
        if (n == WIRE_NODES_MAX)
            return error_set(err, EINVAL,
                             "Nodes.items: more than %d nodes in one request",
                             WIRE_NODES_MAX);
        if (n == a->nodes_cap)
            a->nodes = xgrow(a->nodes, n, &a->nodes_cap, sizeof *a->nodes);
        grow_names(a, n);
        if (!jscan_raw(s, &a->nodes[n]))
            return wrong(s, err);
        int r = node_name(&a->nodes[n], n, &a->names[n], err);
        if (r < 0)
            return r;
        n++;
    }
    a->n = n;
    return s->fault ? wrong(s, err) : 0;
}

static int read_nodes(struct jscan *s, const struct roster *roster,
                      struct wire_args *a, struct error *err)
{
    struct jtext key;
    bool seen = false;
    if (!jscan_object(s))
        return wrong(s, err);
    while (jscan_member(s, &key)) {
        if (!jtext_is_nocase(&key, "items")) {
            if (!jscan_skip(s))
                return wrong(s, err);
            continue;
        }
        if (seen)
            return twice(s, "Nodes.items", err);
        seen = true;
        int r = read_items(s, a, err);
        if (r < 0)
            return r;
    }
    a->full_nodes = true;
    roster_find_many(roster, a->names, a->n, a->indexes);
    return s->fault ? wrong(s, err) : 0;
}

int wire_read_args(const char *body, size_t size,
                   const struct demand_config *config,
                   const struct roster *roster, struct wire_args *ret_args,
                   struct error *err)
{
    struct wire_args *a = ret_args;
    struct jscan s;
    struct jtext key;
    bool has_nodes = false, has_names = false, has_list = false;
    int contract = 0;
    a->has_pod = a->full_nodes = false;
    a->n = 0;
    memset(&a->demand, 0, sizeof a->demand);
    memset(&a->pod, 0, sizeof a->pod);
    jscan_init(&s, body, size);
    if (!jscan_object(&s))
        return wrong(&s, err);
    while (jscan_member(&s, &key)) {
        int r = 0;
        if (jtext_is_nocase(&key, "Pod")) {
            r = read_args_pod(&s, config, a, err);
        } else if (jtext_is_nocase(&key, "Nodes")) {
            if (has_nodes)
                return twice(&s, "Nodes", err);
            has_nodes = true;
            if (jscan_null(&s))
                continue;
            if (has_list)
                return error_set(err, EINVAL,
                                 "Nodes: NodeNames was given, too");
            has_list = true;
            r = read_nodes(&s, roster, a, err);
        } else if (jtext_is_nocase(&key, "NodeNames")) {
            if (has_names)
                return twice(&s, "NodeNames", err);
            has_names = true;
            if (jscan_null(&s))
                continue;
            if (has_list)
                return error_set(err, EINVAL,
                                 "NodeNames: Nodes was given, too");
            has_list = true;
            r = read_names(&s, roster, a, err);
        } else if (!jscan_skip(&s)) {
            return wrong(&s, err);
        }
        if (r == -EDOM)
            contract = r;
        else if (r < 0)
            return r;
    }
    if (!jscan_end(&s))
        return wrong(&s, err);
    if (!a->has_pod)
        return error_set(err, EINVAL, "Pod: required member missing");
    return contract;
}

void wire_args_fini(struct wire_args *a)
{
    free(a->names);
    free(a->indexes);
    free(a->nodes);
    free(a->known_pod);
    memset(a, 0, sizeof *a);
}

/* --- bind --------------------------------------------------------------- */

static int read_field(struct jscan *s, const char *name, char *dst, size_t cap,
                      struct error *err)
{
    struct jtext text;
    if (dst[0])
        return twice(s, name, err);
    if (!jscan_string(s, &text))
        return wrong(s, err);
    if (text.size >= cap)
        return error_set(err, EINVAL, "%s: has %zu bytes, the limit is %zu",
                         name, text.size, cap - 1);
    (void)jtext_decode(&text, dst);
    return 0;
}

int wire_read_binding(const char *body, size_t size,
                      struct wire_binding *ret_binding, struct error *err)
{
    struct wire_binding b = {0};
    const struct {
        const char *name;
        char *dst;
        size_t cap;
    } fields[] = {
        {"PodName", b.name, sizeof b.name},
        {"PodNamespace", b.namespace, sizeof b.namespace},
        {"PodUID", b.uid, sizeof b.uid},
        {"Node", b.node, sizeof b.node},
    };
    struct jscan s;
    struct jtext key;
    jscan_init(&s, body, size);
    if (!jscan_object(&s))
        return wrong(&s, err);
    while (jscan_member(&s, &key)) {
        size_t i = 0;
        while (i < ARRAY_LEN(fields) && !jtext_is_nocase(&key, fields[i].name))
            i++;
        if (i == ARRAY_LEN(fields)) {
            if (!jscan_skip(&s))
                return wrong(&s, err);
            continue;
        }
        int r = read_field(&s, fields[i].name, fields[i].dst, fields[i].cap,
                           err);
        if (r < 0)
            return r;
    }
    if (!jscan_end(&s))
        return wrong(&s, err);
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        if (!fields[i].dst[0])
            return error_set(err, EINVAL, "%s: required member missing",
                             fields[i].name);
    *ret_binding = b;
    return 0;
}

/* --- preempt ------------------------------------------------------------ */

static int add_uid(struct wire_preemption *p, const struct jtext *uid,
                   struct error *err)
{
    if (p->n_uids == WIRE_VICTIMS_MAX)
        return error_set(err, EINVAL, "more than %d victims in one request",
                         WIRE_VICTIMS_MAX);
    p->uids = xgrow(p->uids, p->n_uids, &p->uids_cap, sizeof *p->uids);
    p->uids[p->n_uids++] = *uid;
    return 0;
}

/* The UID of a victim: {"UID":"…"} or a whole Pod with metadata.uid. */
static int read_victim(struct jscan *s, struct wire_preemption *p,
                       struct error *err)
{
    struct jtext key, uid = {0};
    if (!jscan_object(s))
        return wrong(s, err);
    while (jscan_member(s, &key)) {
        if (jtext_is_nocase(&key, "UID")) {
            if (!jscan_string(s, &uid))
                return wrong(s, err);
        } else if (jtext_is(&key, "metadata")) {
            if (!jscan_object(s))
                return wrong(s, err);
            while (jscan_member(s, &key))
                if (!(jtext_is(&key, "uid") ? jscan_string(s, &uid)
                                            : jscan_skip(s)))
                    return wrong(s, err);
        } else if (!jscan_skip(s)) {
            return wrong(s, err);
        }
    }
    if (s->fault)
        return wrong(s, err);
    if (!uid.data)
        return error_set(err, EINVAL, "Pods: a victim without UID (byte %zu)",
                         jscan_offset(s));
    return add_uid(p, &uid, err);
}

static int read_victims(struct jscan *s, struct wire_preemption *p,
                        struct wire_victims *v, struct error *err)
{
    struct jtext key;
    if (!jscan_object(s))
        return wrong(s, err);
    while (jscan_member(s, &key)) {
        if (jtext_is_nocase(&key, "NumPDBViolations")) {
            if (!jscan_int64(s, &v->pdb_violations))
                return wrong(s, err);
        } else if (jtext_is_nocase(&key, "Pods")) {
            if (jscan_null(s))
                continue;
            if (!jscan_array(s))
                return wrong(s, err);
            while (jscan_element(s)) {
                int r = read_victim(s, p, err);
                if (r < 0)
                    return r;
            }
        } else if (!jscan_skip(s)) {
            return wrong(s, err);
        }
    }
    return s->fault ? wrong(s, err) : 0;
}

static int read_victim_map(struct jscan *s, struct wire_preemption *p,
                           struct error *err)
{
    struct jtext node;
    if (jscan_null(s))
        return 0;
    if (!jscan_object(s))
        return wrong(s, err);
    while (jscan_member(s, &node)) {
        if (p->n_nodes == WIRE_NODES_MAX)
            return error_set(err, EINVAL, "more than %d nodes in one request",
                             WIRE_NODES_MAX);
        struct wire_victims v = {.node = node, .first = p->n_uids};
        int r = read_victims(s, p, &v, err);
        if (r < 0)
            return r;
        v.n = p->n_uids - v.first;
        p->nodes = xgrow(p->nodes, p->n_nodes, &p->nodes_cap, sizeof *p->nodes);
        p->nodes[p->n_nodes++] = v;
    }
    return s->fault ? wrong(s, err) : 0;
}

int wire_read_preemption(const char *body, size_t size,
                         const struct demand_config *config,
                         struct wire_preemption *ret_preemption,
                         struct error *err)
{
    struct wire_preemption *p = ret_preemption;
    struct jscan s;
    struct jtext key;
    p->has_pod = false;
    p->n_nodes = p->n_uids = 0;
    jscan_init(&s, body, size);
    if (!jscan_object(&s))
        return wrong(&s, err);
    while (jscan_member(&s, &key)) {
        int r = 0;
        if (jtext_is_nocase(&key, "Pod"))
            r = read_pod(&s, config, &p->demand, &p->has_pod, err);
        else if (jtext_is_nocase(&key, "NodeNameToVictims") ||
                 jtext_is_nocase(&key, "NodeNameToMetaVictims"))
            r = read_victim_map(&s, p, err);
        else if (!jscan_skip(&s))
            return wrong(&s, err);
        if (r < 0)
            return r;
    }
    if (!jscan_end(&s))
        return wrong(&s, err);
    if (!p->has_pod)
        return error_set(err, EINVAL, "Pod: required member missing");
    return 0;
}

void wire_preemption_fini(struct wire_preemption *p)
{
    free(p->nodes);
    free(p->uids);
    memset(p, 0, sizeof *p);
}

/* --- writing ------------------------------------------------------------ */

#define LITERAL(text) text, sizeof(text) - 1

static void add_raw_string(struct str *out, const struct jtext *t)
{
    if (!str_reserve(out, t->size + 2))
        return;
    char *p = out->data + out->size;
    *p++ = '"';
    memcpy(p, t->data, t->size);
    p[t->size] = '"';
    out->size += t->size + 2;
    out->data[out->size] = '\0';
}

void wire_write_fitting(const struct wire_args *a, const uint32_t *positions,
                        size_t n, struct str *out)
{
    if (a->full_nodes)
        str_add_n(out, LITERAL("{\"Nodes\":{\"metadata\":{},\"items\":["));
    else
        str_add_n(out, LITERAL("{\"Nodes\":null,\"NodeNames\":["));
    for (size_t i = 0; i < n; i++) {
        if (i)
            str_add_c(out, ',');
        if (a->full_nodes)
            str_add_n(out, a->nodes[positions[i]].data,
                      a->nodes[positions[i]].size);
        else
            add_raw_string(out, &a->names[positions[i]]);
    }
    if (a->full_nodes)
        str_add_n(out, LITERAL("]},\"NodeNames\":null"));
    else
        str_add_n(out, LITERAL("]"));
    str_add_n(out, LITERAL(",\"FailedNodes\":{},"
                           "\"FailedAndUnresolvableNodes\":{},"
                           "\"Error\":\"\"}"));
}

void wire_failures_begin(const struct wire_args *a, struct wire_failures *f,
                         struct str *out)
{
    *f = (struct wire_failures){.out = out};
    if (a->full_nodes)
        str_add_n(out, LITERAL("{\"Nodes\":{\"metadata\":{},\"items\":[]},"
                               "\"NodeNames\":null,\"FailedNodes\":{"));
    else
        str_add_n(out, LITERAL("{\"Nodes\":null,\"NodeNames\":[],"
                               "\"FailedNodes\":{"));
}

void wire_failures_add(struct wire_failures *f, const struct jtext *name,
                       const char *reason, size_t reason_size)
{
    if (f->any)
        str_add_c(f->out, ',');
    f->any = true;
    add_raw_string(f->out, name);
    str_add_c(f->out, ':');
    str_add_json_n(f->out, reason, reason_size);
}

void wire_failures_unresolvable(struct wire_failures *f)
{
    str_add_n(f->out, LITERAL("},\"FailedAndUnresolvableNodes\":{"));
    f->any = false;
}

void wire_failures_end(struct wire_failures *f)
{
    str_add_n(f->out, LITERAL("},\"Error\":\"\"}"));
}

void wire_write_filter_error(const char *text, struct str *out)
{
    str_add_n(out, LITERAL("{\"Nodes\":null,\"NodeNames\":[],"
                           "\"FailedNodes\":{},"
                           "\"FailedAndUnresolvableNodes\":{},\"Error\":"));
    str_add_json(out, text);
    str_add_c(out, '}');
}

void wire_write_priorities(const struct jtext *names, const uint8_t *scores,
                           size_t n, struct str *out)
{
    str_add_c(out, '[');
    for (size_t i = 0; i < n; i++) {
        if (i)
            str_add_n(out, LITERAL(",{\"Host\":"));
        else
            str_add_n(out, LITERAL("{\"Host\":"));
        add_raw_string(out, &names[i]);
        str_add_n(out, LITERAL(",\"Score\":"));
        str_add_u64(out, scores[i]);
        str_add_c(out, '}');
    }
    str_add_c(out, ']');
}

void wire_write_binding(const char *error, struct str *out)
{
    str_add_n(out, LITERAL("{\"Error\":"));
    str_add_json(out, error);
    str_add_c(out, '}');
}

void wire_write_preemption(const struct wire_preemption *p,
                           const struct wire_named *named, struct str *out)
{
    bool any = false;
    str_add_n(out, LITERAL("{\"NodeNameToMetaVictims\":{"));
    for (size_t i = 0; i < p->n_nodes; i++) {
        const struct wire_victims *v = &p->nodes[i];
        size_t given = named[i].instead ? 0 : v->n;
        if (!named[i].keep)
            continue;
        if (any)
            str_add_c(out, ',');
        any = true;
        add_raw_string(out, &v->node);
        str_add_n(out, LITERAL(":{\"Pods\":["));
        for (size_t j = 0; j < given + named[i].n; j++) {
            str_add(out, j ? ",{\"UID\":" : "{\"UID\":");
            if (j < given)
                add_raw_string(out, &p->uids[v->first + j]);
            else
                str_add_json(out, named[i].uids[j - given]);
            str_add_c(out, '}');
        }
        str_add_n(out, LITERAL("],\"NumPDBViolations\":"));
        str_add_i64(out, v->pdb_violations);
        str_add_c(out, '}');
    }
    str_add_n(out, LITERAL("}}"));
}
