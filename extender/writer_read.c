/* Reading slices back, as the objects of an API server: with a resource
 * version and a uid, whatever the publisher wrote there. */
#include <stdlib.h>
#include <string.h>

#include "extender/writer_private.h"
#include "model/base/hash.h"
#include "model/base/jscan.h"
#include "model/base/mem.h"

enum { LIST_DEFAULT = 500 };

/* A uid that is the same as long as the name is: RFC 9562, version 8. */
static void add_uid(struct str *out, const char *name)
{
    uint64_t a = hash_bytes(name, strlen(name));
    uint64_t b = hash_mix(a ^ UINT64_C(0x6a09e667f3bcc909),
                          UINT64_C(0xbb67ae8584caa73b));
    str_addf(out, "\"%08x-%04x-8%03x-%04x-%012llx\"", (unsigned)(a >> 32),
             (unsigned)(a >> 16 & 0xffff), (unsigned)(a & 0xfff),
             (unsigned)(b >> 48 & 0x3fff) | 0x8000U,
             (unsigned long long)(b & UINT64_C(0xffffffffffff)));
}

static bool is_server_set(const struct jtext *key)
{
    return jtext_is(key, "resourceVersion") || jtext_is(key, "uid") ||
           jtext_is(key, "creationTimestamp") ||
           jtext_is(key, "managedFields");
}

static void add_metadata(struct jscan *s, const char *name, uint64_t version,
                         struct str *out)
{
    struct jtext key, value;
    str_addf(out, "{\"resourceVersion\":\"%llu\",\"uid\":",
             (unsigned long long)version);
    add_uid(out, name);
    (void)jscan_object(s);
    while (jscan_member(s, &key)) {
        if (!jscan_raw(s, &value) || is_server_set(&key))
            continue;
        str_add(out, ",\"");
        str_add_n(out, key.data, key.size);
        str_add(out, "\":");
        str_add_n(out, value.data, value.size);
    }
    str_add_c(out, '}');
}

/* Append the stored object.  It was accepted once, so it can be read. */
static void add_object(const char *name, const char *json, size_t size,
                       uint64_t version, struct str *out)
{
    struct jscan s;
    struct jtext key, value;
    const char *comma = "";
    jscan_init(&s, json, size);
    str_add_c(out, '{');
    (void)jscan_object(&s);
    while (jscan_member(&s, &key)) {
        str_add(out, comma);
        str_add_c(out, '"');
        str_add_n(out, key.data, key.size);
        str_add(out, "\":");
        comma = ",";
        if (jtext_is(&key, "metadata"))
            add_metadata(&s, name, version, out);
        else if (jscan_raw(&s, &value))
            str_add_n(out, value.data, value.size);
    }
    str_add_c(out, '}');
}

static int visit_one(void *ctx, const char *name, const char *json,
                     size_t size, uint64_t version)
{
    struct writer_op *op = ctx;
    op->resource_version = version;
    add_object(name, json, size, version, &op->out);
    return 0;
}

void read_slice(struct writer *w, struct writer_op *op)
{
    op->result =
        store_get_slice(w->store, op->name, visit_one, op, &op->error);
}

struct list {
    struct writer *w;
    struct writer_op *op;
    size_t limit;
};

static int visit_listed(void *ctx, const char *name, const char *json,
                        size_t size, uint64_t version)
{
    struct list *list = ctx;
    struct writer_op *op = list->op;
    const char *owner = ingest_owner(list->w->ingest, name);
    if (op->node && (!owner || strcmp(owner, op->node) != 0))
        return 0;
    if (op->n_out == list->limit) {
        op->more = true;
        return 1;
    }
    if (op->n_out++)
        str_add_c(&op->out, ',');
    add_object(name, json, size, version, &op->out);
    size_t n = strnlen(name, sizeof op->last - 1);
    memcpy(op->last, name, n);
    op->last[n] = '\0';
    return 0;
}

void read_slices(struct writer *w, struct writer_op *op)
{
    struct list list = {.w = w,
                        .op = op,
                        .limit = op->limit ? op->limit : LIST_DEFAULT};
    op->n_out = 0;
    op->more = false;
    op->last[0] = '\0';
    str_add_c(&op->out, '[');
    op->result =
        store_each_slice(w->store, op->after, visit_listed, &list, &op->error);
    str_add_c(&op->out, ']');
    op->resource_version = store_resource_version(w->store);
}
