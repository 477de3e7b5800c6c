/* What the owner of a pod or job could ask for instead. */
#include "extender/judge/advice_private.h"

uint64_t demand_amount(const struct demand *d, enum change_kind kind)
{
    switch (kind) {
    case CHANGE_ALIGN:
        return d->align;
    case CHANGE_EXCLUSIVE:
        return d->exclusive;
    case CHANGE_CARD_CORES:
        return d->has_card_need ? d->card_cores : 0;
    case CHANGE_CARD_MEMORY:
        return d->has_card_need ? d->card_memory_mib : 0;
    case CHANGE_CPUS:
        return d->cpu_milli;
    case CHANGE_MEMORY:
        return d->memory_mib;
    case CHANGE_GPUS:
        return d->gpus;
    case CHANGE_NICS:
        return d->nics;
    case CHANGE_CARDS:
        return d->cards;
    default:
        return 0;
    }
}

void demand_set_amount(struct demand *d, enum change_kind kind, uint64_t value)
{
    switch (kind) {
    case CHANGE_ALIGN:
        d->align = (uint8_t)value;
        break;
    case CHANGE_EXCLUSIVE:
        d->exclusive = value != 0;
        break;
    case CHANGE_CARD_CORES:
        d->card_cores = (uint32_t)value;
        break;
    case CHANGE_CARD_MEMORY:
        d->card_memory_mib = (uint32_t)value;
        break;
    case CHANGE_CPUS:
        d->cpu_milli = (uint32_t)value;
        break;
    case CHANGE_MEMORY:
        d->memory_mib = (uint32_t)value;
        break;
    case CHANGE_GPUS:
        d->gpus = d->pair_gpus = (uint8_t)value;
        break;
    case CHANGE_NICS:
        d->nics = d->pair_nics = (uint8_t)value;
        break;
    case CHANGE_CARDS:
        d->cards = d->pair_cards = (uint8_t)value;
        break;
    default:
        break;
    }
}

/* The least that it makes sense to ask for. */
static uint64_t least_amount(const struct demand *d, enum change_kind kind)
{
    uint64_t now = demand_amount(d, kind);
    switch (kind) {
    case CHANGE_ALIGN: /* numbers are relations: more is farther */
        return d->gpus == 0 && now < RELATION_NODE ? RELATION_SOCKET : now + 1;
    case CHANGE_EXCLUSIVE:
    case CHANGE_NICS:
    case CHANGE_GPUS:
        return 0;
    default:
        return 1;
    }
}

/* Where asking for less helps as much or more. */
static bool is_monotone(enum change_kind kind)
{
    return kind == CHANGE_CARD_CORES || kind == CHANGE_CARD_MEMORY ||
           kind == CHANGE_CPUS || kind == CHANGE_MEMORY || kind == CHANGE_NICS;
}

bool advice_lessen(const struct demand *d, enum change_kind kind, fits_f *fits,
                   void *ctx, uint64_t *ret_value)
{
    uint64_t now = demand_amount(d, kind), least = least_amount(d, kind);
    if (kind == CHANGE_ALIGN) {
        for (uint64_t r = least; r < RELATION_COUNT; r++)
            if (fits(ctx, kind, r)) {
                *ret_value = r;
                return true;
            }
        return false;
    }
    if (now <= least)
        return false;
    if (!is_monotone(kind)) {
        for (uint64_t v = now; v-- > least;)
            if (fits(ctx, kind, v)) {
                *ret_value = v;
                return true;
            }
        return false;
    }
    if (!fits(ctx, kind, least))
        return false;
    uint64_t low = least, high = now; /* low fits, high does not */
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (fits(ctx, kind, middle))
            low = middle;
        else
            high = middle;
    }
    *ret_value = low;
    return true;
}
