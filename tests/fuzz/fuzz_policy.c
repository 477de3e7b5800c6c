/* Any bytes as a policy file: no crash; what is accepted is in order, and
 * answers. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/decide/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_order(const struct policy *p)
{
    for (size_t i = 0; i < p->n_quotas; i++)
        if (policy_find_quota(p, p->quotas[i].namespace) != &p->quotas[i])
            abort();
    for (size_t i = 1; i < p->n_services; i++)
        if (p->services[i - 1].priority < p->services[i].priority)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_with(policy) struct policy *p = NULL, *again = NULL;
    struct error err = {0};
    if (policy_read((const char *)data, size, &p, &err) < 0) {
        if (p || err.text[0] == '\0')
            abort();
        return 0;
    }
    check_order(p);
    const struct device card = {.kind = DEVICE_CARD,
                                .model = "BlueField-3]aaaaaaaaaaaaaaaaaaaaaaaa",
                                .has_pci = true,
                                .pci = {.bus = 0x17}};
    for (size_t i = 0; i < p->n_services; i++)
        (void)policy_selects(&p->services[i], "gpu-03-aaaaaaaaaaaaaaaaaaaaaa",
                             &card);
    if (policy_read((const char *)data, size, &again, &err) < 0 ||
        again->hash != p->hash)
        abort();
    return 0;
}
