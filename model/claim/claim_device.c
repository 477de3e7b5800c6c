#include "model/claim/claim_device.h"

#include <stdlib.h>
#include <string.h>

#include "model/claim/claim_capacity.h"
#include "model/claim/claim_read.h"

struct reading {
    struct claim_reading base;
    struct claim_slice *slice;
    struct jtext name, driver, pool, node;
    bool all_nodes, by_device, has_selector;
};

static void read_true(struct jscan *s, void *to)
{
    (void)jscan_bool(s, to); /* a fault sticks */
}

/* --- the object --------------------------------------------------------- */

static void read_selector(struct jscan *s, void *to)
{
    ((struct reading *)to)->has_selector = true;
    (void)jscan_skip(s); /* a fault sticks */
}

static void read_generation(struct jscan *s, void *to)
{
    (void)jscan_int64(s, &((struct reading *)to)->slice->generation);
}

static void read_slice_count(struct jscan *s, void *to)
{
    (void)jscan_int64(s, &((struct reading *)to)->slice->slice_count);
}

static const struct jrow pool_rows[] = {
    JROW("name", JROW_NULLABLE, jrow_text, struct reading, pool),
    JROW_CALL("generation", JROW_NULLABLE, JKIND_NUMBER, read_generation),
    JROW_CALL("resourceSliceCount", JROW_NULLABLE, JKIND_NUMBER,
              read_slice_count),
    JROW_END,
};
static const struct jrow metadata_rows[] = {
    JROW("name", JROW_NULLABLE, jrow_text, struct reading, name),
    JROW_END,
};
static const struct jrow spec_rows[] = {
    JROW("driver", JROW_NULLABLE, jrow_text, struct reading, driver),
    JROW("nodeName", JROW_NULLABLE, jrow_text, struct reading, node),
    JROW_OBJECT("pool", JROW_NULLABLE, pool_rows),
    JROW_CALL_TO("allNodes", JROW_NULLABLE, JKIND_NONE, read_true,
                 struct reading, all_nodes),
    JROW_CALL_TO("perDeviceNodeSelection", JROW_NULLABLE, JKIND_NONE, read_true,
                 struct reading, by_device),
    JROW_CALL("nodeSelector", JROW_NULLABLE, JKIND_OBJECT, read_selector),
    JROW_END,
};
static const struct jrow object_rows[] = {
    JROW_OBJECT("metadata", JROW_NULLABLE, metadata_rows),
    JROW_OBJECT("spec", JROW_NULLABLE, spec_rows),
    JROW_END,
};

static int finish(struct reading *all)
{
    struct claim_slice *slice = all->slice;
    struct claim_reading *r = &all->base;
    struct jscan none; /* it only carries the refusal */
    jscan_init(&none, "", 0);
    slice->name = claim_need(r, &none, &all->name, CLAIM_NAME_MAX,
                             "metadata.name");
    slice->driver = claim_need(r, &none, &all->driver, CLAIM_NAME_MAX,
                               "spec.driver");
    slice->pool = claim_need(r, &none, &all->pool, CLAIM_NAME_MAX,
                             "spec.pool.name");
    slice->node = claim_keep(r, &none, &all->node, CLAIM_NAME_MAX,
                             "spec.nodeName");
    if (r->code)
        return r->code;
    slice->reach = all->by_device      ? CLAIM_BY_DEVICE
                   : all->all_nodes    ? CLAIM_OF_ALL
                   : all->has_selector ? CLAIM_BY_SELECTOR
                                       : CLAIM_OF_NODE;
    if (slice->reach == CLAIM_OF_NODE && !*slice->node)
        return error_set(r->err, EINVAL,
                         "spec.nodeName: must not be empty, unless nodes are "
                         "selected otherwise");
    if (slice->reach != CLAIM_OF_NODE)
        slice->node = "";
    return 0;
}

int claim_slice_read(const char *json, size_t size,
                     struct claim_slice **ret_slice, struct error *err)
{
    cleanup_with(claim_slice) struct claim_slice *slice =
        xcalloc(1, sizeof *slice);
    cleanup_free struct reading *r = xcalloc(1, sizeof *r);
    r->base = (struct claim_reading){.arena = &slice->arena, .err = err};
    r->slice = slice;
    int rc = claim_read_object(json, size, CLAIM_SLICE_MAX, object_rows,
                               &r->base);
    if (rc == 0)
        rc = finish(r);
    if (rc == 0)
        *ret_slice = steal(&slice);
    return rc;
}

void claim_slice_destroy(struct claim_slice *slice)
{
    if (!slice)
        return;
    arena_fini(&slice->arena);
    free(slice);
}
