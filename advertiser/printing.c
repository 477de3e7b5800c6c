#include "advertiser/printing.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "advertiser/probe/print.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/base/text.h"
#include "model/slice/slice.h"

enum { OUTPUT_MAX = 64 << 20 };

static void print_slices(const struct topo *topo, const char *boot_id,
                         struct str *out)
{
    struct slice_epoch epoch = {.generation = 1};
    (void)snprintf(epoch.boot_id, sizeof epoch.boot_id, "%s", boot_id);
    str_add(out, "{\"apiVersion\":\"" SLICE_API_VERSION
                 "\",\"kind\":\"ResourceSliceList\",\"metadata\":{},"
                 "\"items\":[");
    for (size_t i = 0; i < slice_count(topo); i++) {
        if (i > 0)
            str_add_c(out, ',');
        slice_encode(topo, &epoch, i, out);
    }
    str_add(out, "]}\n");
}

int printing_topo(const char *what, const char *boot_id,
                  const struct topo *topo)
{
    cleanup_str struct str out = STR_INIT(OUTPUT_MAX);
    if (strcmp(what, "tree") == 0)
        print_tree(topo, &out);
    else if (strcmp(what, "matrix") == 0)
        print_matrix(topo, &out);
    else if (strcmp(what, "relations") == 0)
        print_relations(topo, &out);
    else
        print_slices(topo, boot_id, &out);
    if (strcmp(what, "tree") == 0 || strcmp(what, "matrix") == 0)
        text_clean_lines(&out);
    if (fwrite(str_text(&out), 1, out.size, stdout) == out.size &&
        fflush(stdout) == 0)
        return 0;
    perror("biga-advertiser: standard output");
    return -EIO;
}
