#include "cli/demo/demo_fabric.h"

#include <stdio.h>

size_t demo_n_leaves(size_t n_hosts)
{
    return (n_hosts + DEMO_LEAF_HOSTS - 1) / DEMO_LEAF_HOSTS;
}

size_t demo_leaf(size_t host, size_t n_hosts)
{
    return host % demo_n_leaves(n_hosts);
}

void demo_fabric_write(size_t n_hosts, struct str *out)
{
    size_t n_leaves = demo_n_leaves(n_hosts);
    int digits = snprintf(NULL, 0, "%zu", n_hosts);
    str_add(out, "{\"switches\":[");
    for (size_t i = 0; i < n_leaves; i++)
        str_addf(out, "{\"name\":\"leaf%zu\",\"links\":[\"spine%zu\"]},\n",
                 i + 1, demo_spine(i) + 1);
    for (size_t i = 0; i <= demo_spine(n_leaves - 1); i++)
        str_addf(out, "{\"name\":\"spine%zu\",\"links\":[\"core\"]},\n", i + 1);
    str_add(out, "{\"name\":\"core\"}],\n\"hosts\":[");
    for (size_t i = 0; i < n_hosts; i++)
        str_addf(out, "%s{\"name\":\"host%0*zu\",\"leaf\":\"leaf%zu\"}",
                 i ? ",\n" : "", digits, i + 1, demo_leaf(i, n_hosts) + 1);
    str_add(out, "]}\n");
}
