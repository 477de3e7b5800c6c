#include "tests/lib/sim/simfabric.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/fabric/fabric_private.h"

struct fabric *simfabric_create(size_t n_leaves, const size_t *per,
                                unsigned n_tiers)
{
    struct fabric *f = xcalloc(1, sizeof *f);
    size_t n = 0, width = n_leaves, first = 0;
    for (unsigned t = 0; t < n_tiers; t++) {
        n += width;
        width = t + 1 < n_tiers ? (width + per[t] - 1) / per[t] : 0;
    }
    atomic_init(&f->refs, 1);
    f->n_tiers = n_tiers;
    f->domains = xcalloc(n + 1, sizeof *f->domains);
    f->n_domains = n;
    width = n_leaves;
    for (unsigned t = 0; t < n_tiers; t++) {
        for (size_t i = 0; i < width; i++)
            f->domains[first + i] = (struct fabric_domain){
                .name = "switch",
                .tier = (uint8_t)t,
                .parent = t + 1 < n_tiers
                              ? (int32_t)(first + width + i / per[t])
                              : FABRIC_NONE,
            };
        first += width;
        width = t + 1 < n_tiers ? (width + per[t] - 1) / per[t] : 0;
    }
    return f;
}

struct fabric *simfabric_read(const char *text)
{
    struct fabric_source source = {"test", text, strlen(text), FABRIC_AUTO};
    struct fabric *f = NULL;
    struct error err = {0};
    if (fabric_read(&source, 1, NULL, &f, &err) < 0) {
        (void)fprintf(stderr, "fabric_read: %s\n", err.text);
        abort();
    }
    return f;
}
