/* Any bytes as an operator's file: no crash; what is accepted answers. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "advertiser/describe/cardfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_with(cardfile) struct cardfile *file = NULL;
    struct error err = {0};
    if (cardfile_parse((const char *)data, size, &file, &err) < 0) {
        if (file || err.text[0] == '\0')
            abort();
        return 0;
    }
    const struct cardfile_key key = {.pci = {.bus = 0x17},
                                     .vendor_id = 0x15b3,
                                     .device_id = 0xa2dc,
                                     .serial = "MT01"};
    struct cardfile_card card;
    cardfile_find(file, &key, &card);
    if (strlen(card.endpoint) > TOPO_TEXT_MAX ||
        strlen(card.tls_ca) > CARDFILE_PATH_MAX)
        abort();
    for (size_t i = 0; i < card.n_sets; i++) {
        const struct cardfile_set *set = &card.sets[i];
        if (!device_set_valid(set->name, strlen(set->name)) || set->share < 1 ||
            set->share > CARDFILE_SHARE_MAX)
            abort();
        for (size_t j = 0; j < set->n_globs; j++)
            if (strncmp(set->globs[j], "/dev/", 5) != 0 ||
                strlen(set->globs[j]) > CARDFILE_NODE_MAX)
                abort();
    }
    return 0;
}
