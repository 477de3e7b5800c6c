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

enum { SLICES = 2000, MODELS = 8, SECONDS = 3 };

struct seen {
    struct slice_loader *loader;
    uint64_t n, known;
};

static void learn(struct slice_loader *l, const struct stored_slice *s)
{
    cleanup_with(topo) struct topo *topo = NULL;
    struct slice *slice = s->slice;
    if (slice_join(&slice, 1, &topo, NULL) < 0)
        abort();
    slice_loader_learn(l, s, topo);
}

static void look(void *ctx, const struct stored_slice *s)
{
    struct seen *seen = ctx;
    bool broken = seen->n % 5 == 4;
    if (s->resource_version != ++seen->n || broken != !s->slice) {
        (void)fprintf(stderr, "race_slice_loader: %s: is number %llu: %s\n",
                      s->name, (unsigned long long)seen->n, s->error.text);
        abort();
    }
    seen->known += s->slice && !s->is_new;
    if (s->slice)
        learn(seen->loader, s);
}

static void load(char *const *models)
{
    struct seen seen = {0};
    struct slice_loader *l = slice_loader_create(look, &seen);
    seen.loader = l;
    for (uint64_t i = 0; i < SLICES; i++) {
        const char *json = models[i % MODELS];
        slice_loader_add(l, "s", json, strlen(json) - (i % 5 == 4), i + 1);
    }
    slice_loader_destroy(l);
    if (seen.n != SLICES || seen.known == 0)
        abort();
}

int main(int argc, char **argv)
{
    int64_t seconds = argc > 1 ? strtol(argv[1], NULL, 10) : SECONDS;
    int64_t end_ms = clock_ms() + seconds * 1000;
    char *models[MODELS];
    for (unsigned i = 0; i < MODELS; i++)
        models[i] = sim_slice("n", i + 1, "boot", 1, 0);
    do
        load(models);
    while (clock_ms() < end_ms);
    for (unsigned i = 0; i < MODELS; i++)
        free(models[i]);
    return 0;
}
