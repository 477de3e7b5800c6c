/* Reads slices back, as the API server's objects. */
#include <string.h>

#include "extender/keep/served_slice.h"
#include "extender/keep/writer_private.h"

enum { LIST_DEFAULT = 500 };

static int visit_one(void *ctx, const char *name, const char *json, size_t size,
                     uint64_t version)
{
    struct writer_op *op = ctx;
    op->resource_version = version;
    served_slice_write(&op->out,
                       &(struct served_slice){name, json, size, version});
    return 0;
}

void read_slice(struct writer *w, struct writer_op *op)
{
    op->result = store_get_slice(w->store, op->name, visit_one, op, &op->error);
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
    served_slice_write(&op->out,
                       &(struct served_slice){name, json, size, version});
    size_t n = strnlen(name, sizeof op->last - 1);
    memcpy(op->last, name, n);
    op->last[n] = '\0';
    return 0;
}

void read_slices(struct writer *w, struct writer_op *op)
{
    struct list list = {
        .w = w, .op = op, .limit = op->limit ? op->limit : LIST_DEFAULT};
    op->n_out = 0;
    op->more = false;
    op->last[0] = '\0';
    str_add_c(&op->out, '[');
    op->result = store_each_slice(w->store, op->after, visit_listed, &list,
                                  &op->error);
    str_add_c(&op->out, ']');
    op->resource_version = store_resource_version(w->store);
}
