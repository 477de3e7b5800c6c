#include "lib/kube/collection.h"

#include "lib/base/mem.h"

void collection_list(struct strmap *objects)
{
    struct collected *x;
    size_t pos = 0;
    while ((x = strmap_next(objects, &pos)))
        x->listed = false;
}

void collection_listed(struct strmap *objects, collection_forget_f *forget,
                       void *ctx)
{
    size_t n = 0, pos = 0;
    struct collected *x;
    cleanup_free struct collected **gone = xcalloc(objects->n + 1,
                                                   sizeof *gone);
    while ((x = strmap_next(objects, &pos)))
        if (!x->listed)
            gone[n++] = x;
    for (size_t i = 0; i < n; i++)
        forget(ctx, gone[i]);
}
