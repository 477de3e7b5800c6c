/* Any bytes as a fabric, in the form that the first byte says: no crash; what
 * is accepted is nested and in order, and is the same when read again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/fabric/fabric.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_domains(const struct fabric *f)
{
    for (size_t i = 0; i < fabric_n_domains(f); i++) {
        const struct fabric_domain *d = fabric_domain(f, (int32_t)i);
        const struct fabric_domain *up = fabric_domain(f, d->parent);
        if (d->tier >= fabric_n_tiers(f) || d->n_hosts == 0 ||
            d->n_switches == 0)
            abort();
        if (up && (up->tier != d->tier + 1 || up->n_hosts < d->n_hosts))
            abort();
    }
}

static void check_hosts(const struct fabric *f)
{
    size_t n = fabric_n_hosts(f);
    for (size_t i = 0; i < n; i++) {
        const struct fabric_host *h = fabric_host(f, i);
        const struct fabric_domain *d = fabric_domain(f, h->leaf);
        if (!d || d->tier != 0 || h->n_ports == 0 ||
            fabric_find(f, h->name, strlen(h->name)) != h)
            abort();
        if (i > 0 && strcmp(fabric_host(f, i - 1)->name, h->name) >= 0)
            abort();
        int32_t other = fabric_host(f, (i * 7 + 3) % n)->leaf;
        if (fabric_common_tier(f, h->leaf, other) !=
            fabric_common_tier(f, other, h->leaf))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_with(fabric) struct fabric *f = NULL, *again = NULL;
    struct error err = {0};
    if (size == 0)
        return 0;
    struct fabric_source source = {
        .name = "fuzz",
        .text = (const char *)data + 1,
        .size = size - 1,
        .format = (enum fabric_format)(data[0] % (FABRIC_JSON + 1)),
    };
    if (fabric_read(&source, 1, NULL, &f, &err) < 0) {
        if (f || strncmp(err.text, "fuzz", 4) != 0)
            abort();
        return 0;
    }
    check_domains(f);
    check_hosts(f);
    if (fabric_read(&source, 1, NULL, &again, &err) < 0 ||
        fabric_hash(again) != fabric_hash(f))
        abort();
    return 0;
}
