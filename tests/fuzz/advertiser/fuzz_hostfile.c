/* Any bytes as a host description: no crash; what is accepted can be
 * printed, related and published. */
#include <stdint.h>
#include <stdlib.h>

#include "advertiser/describe/hostfile.h"
#include "advertiser/probe/print.h"
#include "tests/lib/roundtrip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_with(topo) struct topo *topo = NULL;
    struct error err = {0};
    if (hostfile_read((const char *)data, size, "host-1", &topo, &err) < 0) {
        if (topo || err.text[0] == '\0')
            abort();
        return 0;
    }
    cleanup_str struct str out = STR_INIT(STR_MAX_DEFAULT);
    print_tree(topo, &out);
    print_matrix(topo, &out);
    print_relations(topo, &out);
    if (out.overflow)
        abort();
    for (size_t i = 0; i < topo_n_devices(topo); i++)
        for (size_t j = 0; j < i; j++)
            if (topo_relation(topo, i, j) != topo_relation(topo, j, i))
                abort();
    if (!roundtrip(topo))
        abort();
    return 0;
}
