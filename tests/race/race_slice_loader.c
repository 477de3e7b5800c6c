/* Slices decoded on several threads, for ThreadSanitizer to watch; and each is
 * there, in its order.
 *
 *   race_slice_loader [SECONDS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "extender/keep/slice_loader.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "tests/lib/sim/simstate.h"

enum { SLICES = 2000, SECONDS = 3 };

static void look(void *ctx, const struct stored_slice *s)
{
    uint64_t *n = ctx;
    bool broken = *n % 5 == 4;
    if (s->resource_version == ++*n && broken == !s->slice)
        return;
    (void)fprintf(stderr, "race_slice_loader: %s: is number %llu: %s\n",
                  s->name, (unsigned long long)*n, s->error.text);
    abort();
}

static void load(const char *json)
{
    uint64_t n = 0;
    struct slice_loader *l = slice_loader_create(look, &n);
    for (uint64_t i = 0; i < SLICES; i++)
        slice_loader_add(l, "s", json, strlen(json) - (i % 5 == 4), i + 1);
    slice_loader_destroy(l);
    if (n != SLICES)
        abort();
}

int main(int argc, char **argv)
{
    int64_t seconds = argc > 1 ? strtol(argv[1], NULL, 10) : SECONDS;
    int64_t end_ms = clock_ms() + seconds * 1000;
    cleanup_free char *json = sim_slice("n", 8, "boot", 1, 0);
    do
        load(json);
    while (clock_ms() < end_ms);
    return 0;
}
