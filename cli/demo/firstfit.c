#include "cli/demo/firstfit.h"

#include <string.h>

#include "lib/base/mem.h"

/* The first device of a kind that is not taken; -1 when there is none. */
static int first_free(const struct host *h, enum device_kind kind,
                      const bool *taken)
{
    for (size_t i = 0; i < h->n; i++)
        if (h->devices[i].kind == kind && !taken[i])
            return (int)i;
    return -1;
}

static bool *copy_taken(const struct publisher *f, size_t host)
{
    size_t n = f->hosts[host].n;
    bool *copy = xcalloc(n + 1, sizeof *copy);
    memcpy(copy, f->taken[host], n * sizeof *copy);
    return copy;
}

void firstfit(const struct publisher *fleet, size_t n,
              struct placement *ret_placements)
{
    size_t placed = 0;
    for (size_t i = 0; i < n; i++)
        ret_placements[i] = (struct placement){0};
    for (size_t i = 0; i < fleet->n_hosts && placed < n; i++) {
        const struct host *h = &fleet->hosts[i];
        cleanup_free bool *taken = copy_taken(fleet, i);
        int card, gpu;
        while (placed < n && (card = first_free(h, DEVICE_CARD, taken)) >= 0 &&
               (gpu = first_free(h, DEVICE_GPU, taken)) >= 0) {
            taken[card] = taken[gpu] = true;
            struct placement *at = &ret_placements[placed++];
            at->placed = true;
            at->host = i;
            at->card = (size_t)card;
            at->gpu = (size_t)gpu;
            at->relation = host_relation(h, at->card, at->gpu);
        }
    }
}

/* Take the closest free pair of `h`; false when there is none. */
static bool take_closest(const struct host *h, bool *taken,
                         enum relation *ret_relation)
{
    enum relation best = RELATION_COUNT;
    size_t card = 0, gpu = 0;
    for (size_t a = 0; a < h->n; a++) {
        for (size_t b = 0; b < h->n; b++) {
            if (taken[a] || taken[b] || h->devices[a].kind != DEVICE_CARD ||
                h->devices[b].kind != DEVICE_GPU ||
                host_relation(h, a, b) >= best)
                continue;
            best = host_relation(h, a, b);
            card = a;
            gpu = b;
        }
    }
    if (best == RELATION_COUNT)
        return false;
    taken[card] = taken[gpu] = true;
    *ret_relation = best;
    return true;
}

size_t best_relations(const struct publisher *fleet, size_t n,
                      enum relation *ret_relations)
{
    size_t count[RELATION_COUNT] = {0}, total = 0;
    for (size_t i = 0; i < fleet->n_hosts; i++) {
        cleanup_free bool *taken = copy_taken(fleet, i);
        enum relation r;
        while (take_closest(&fleet->hosts[i], taken, &r))
            count[r]++;
    }
    for (int r = 0; r < RELATION_COUNT; r++)
        for (; total < n && count[r] > 0; count[r]--)
            ret_relations[total++] = (enum relation)r;
    return total;
}

size_t room_within(const struct publisher *fleet, size_t host,
                   enum relation worst)
{
    cleanup_free bool *taken = copy_taken(fleet, host);
    enum relation r;
    size_t n = 0;
    while (take_closest(&fleet->hosts[host], taken, &r) && r <= worst)
        n++;
    return n;
}
