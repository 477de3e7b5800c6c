/* Orders of streams, as an extender tells them: what is taken is within its
 * caps, or has a fault. */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "advertiser/act/stream/order.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct order *o)
{
    assert(*o->id && strspn(o->id, "0123456789abcdef") == strlen(o->id));
    if (*o->fault)
        return;
    assert(*o->namespace && *o->name);
    assert(o->n_argv <= ORDER_ARGS_MAX && o->n_ports <= JOIN_PORTS_MAX);
    assert(o->kind != ORDER_EXEC || (o->n_argv && !o->argv[o->n_argv]));
    for (size_t i = 0; i < o->n_argv; i++)
        assert(strlen(o->argv[i]) <= ORDER_ARG_MAX);
    for (size_t i = 0; i < o->n_ports; i++)
        assert(o->ports[i] >= 1 && o->ports[i] <= 65535);
    assert(!(o->tty && o->err));
    assert(o->log.tail_lines >= -1 && o->since_s >= -1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct orders all;
    struct error err = {0};
    int r = orders_read((const char *)data, size, &all, &err);
    assert(r == 0 || (r == -EINVAL && err.text[0]));
    if (r < 0)
        return 0;
    assert(all.n <= ORDERS_MAX);
    for (size_t i = 0; i < all.n; i++)
        check(all.list[i]);
    orders_fini(&all);
    return 0;
}
