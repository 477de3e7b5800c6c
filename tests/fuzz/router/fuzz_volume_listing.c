/* Any bytes as what a remote says that it has: no crash; what is accepted is in
 * order, below the pod's two folders, and leads nowhere else. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "router/volume/volume_listing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct volume_tree t = {0};
    struct error err = {0};
    if (volume_listing_read((const char *)data, size, &t, &err) < 0) {
        must(err.code == EPROTO && err.text[0] && t.n == 0);
        return 0;
    }
    for (size_t i = 0; i < t.n; i++) {
        const struct volume_item *item = &t.items[i];
        must(volume_name_ok(item->name) && !item->data);
        must(strncmp(item->name, "disk/", 5) == 0 ||
             strncmp(item->name, "memory/", 7) == 0);
        must(item->type != VOLUME_LINK || volume_name_ok(item->target));
        must(i == 0 || strcmp(t.items[i - 1].name, item->name) < 0);
        must(volume_tree_find(&t, item->name) == item);
    }
    volume_tree_fini(&t);
    return 0;
}
