#include "tests/lib/patterncheck.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "model/slice/slice_pattern.h"
#include "model/topo/topo_hardware.h"

/* NULL: it is refused, or not all of its pool. */
static struct topo *decode(const struct patterncheck_text *t,
                           struct slice **ret_slice)
{
    struct topo *topo = NULL;
    struct error err;
    if (slice_decode(t->json, t->size, ret_slice, &err) < 0 ||
        slice_get_pool_count(*ret_slice) != 1)
        return NULL;
    return slice_join(ret_slice, 1, &topo, &err) < 0 ? NULL : topo;
}

static void check(int is)
{
    if (!is)
        abort();
}

static void check_same(const struct slice *a, const struct slice *b)
{
    const struct slice_epoch *x = slice_get_epoch(a), *y = slice_get_epoch(b);
    check(strcmp(slice_get_name(a), slice_get_name(b)) == 0);
    check(strcmp(slice_get_node(a), slice_get_node(b)) == 0);
    check(strcmp(slice_get_hash(a), slice_get_hash(b)) == 0);
    check(strcmp(x->boot_id, y->boot_id) == 0);
    check(x->generation == y->generation);
    check(slice_get_given(a) == slice_get_given(b));
    check(slice_get_pool_count(a) == slice_get_pool_count(b));
}

/* Equal hardware becomes one in a table. */
static void check_same_topo(struct topo *a, struct topo *b)
{
    size_t n_a, n_b;
    const char *own_a = topo_own_texts(a, &n_a),
               *own_b = topo_own_texts(b, &n_b);
    cleanup_with(hardware_table) struct hardware_table *t =
        hardware_table_create();
    check(n_a == n_b && memcmp(own_a, own_b, n_a) == 0);
    hardware_table_share(t, a);
    hardware_table_share(t, b);
    check(topo_hardware(a) == topo_hardware(b));
}

enum patterncheck patterncheck(const struct patterncheck_text *of,
                               const struct patterncheck_text *other)
{
    cleanup_with(slice) struct slice *first = NULL;
    cleanup_with(topo) struct topo *first_topo = decode(of, &first);
    if (!first_topo)
        return PATTERN_NONE;
    cleanup_with(slice_pattern) struct slice_pattern *p =
        slice_pattern_create(of->json, of->size, first, first_topo);
    if (!p)
        return PATTERN_NONE;

    cleanup_with(slice) struct slice *read = slice_pattern_read(p, other->json,
                                                                other->size);
    if (!read) {
        check(of->size != other->size ||
              memcmp(of->json, other->json, of->size) != 0);
        return PATTERN_OTHER;
    }
    cleanup_with(slice) struct slice *decoded = NULL;
    cleanup_with(topo) struct topo *decoded_topo = decode(other, &decoded);
    check(decoded_topo != NULL);
    check_same(read, decoded);

    cleanup_with(topo) struct topo *topo = NULL;
    struct error err;
    check(slice_join(&read, 1, &topo, &err) == 0);
    check_same_topo(topo, decoded_topo);
    return PATTERN_READ;
}
