#include "extender/view/numa_rows.h"

#include <stdlib.h>

static int row_order(const void *a, const void *b)
{
    const struct numa_row *x = a, *y = b;
    if (!x->device != !y->device)
        return x->device ? -1 : 1;
    if (x->package != y->package)
        return x->package < y->package ? -1 : 1;
    return (x->numa > y->numa) - (x->numa < y->numa);
}

static bool is_listed(const struct numa_row *rows, size_t n, int numa)
{
    for (size_t i = 0; i < n; i++)
        if (rows[i].numa == numa)
            return true;
    return false;
}

size_t numa_rows_find(const struct topo *topo, struct numa_row *rows)
{
    size_t n_devices = topo_n_devices(topo), n = 0, first;
    size_t n_numas = topo_count(topo, DEVICE_NUMA, &first);
    for (size_t i = 0; i < n_numas; i++) {
        const struct device *d = topo_device(topo, first + i);
        rows[n++] = (struct numa_row){d->numa, d->package, d};
    }
    for (size_t i = 0; i < n_devices; i++) {
        int numa = topo_device(topo, i)->numa;
        if (!is_listed(rows, n, numa))
            rows[n++] = (struct numa_row){numa, -1, NULL};
    }
    qsort(rows, n, sizeof *rows, row_order);
    return n;
}

size_t numa_rows_end(const struct numa_row *rows, size_t n, size_t i)
{
    size_t end = i + 1;
    while (end < n && rows[end].package == rows[i].package)
        end++;
    return end;
}
