#include "model/decide/decide_level.h"

#include "model/decide/decide_private.h"

static unsigned width(enum decide_level level, bool nics)
{
    switch (level) {
    case DECIDE_RELATION:
        return COST_RELATION_BITS;
    case DECIDE_SPREAD:
        return COST_SPREAD_BITS;
    case DECIDE_DAMAGE:
        return COST_DAMAGE_BITS;
    case DECIDE_IDLE:
        return COST_IDLE_BITS;
    case DECIDE_NICS:
        return nics ? COST_NICS_BITS : 0;
    case DECIDE_CORES:
        return nics ? COST_CORES_BITS - COST_NICS_BITS : COST_CORES_BITS;
    case DECIDE_LEVELS:
        break;
    }
    return 0;
}

uint32_t decide_level_value(uint32_t cost, enum decide_level level, bool nics)
{
    unsigned below = 0, bits = width(level, nics);
    for (enum decide_level l = level + 1; l < DECIDE_LEVELS; l++)
        below += width(l, nics);
    uint32_t value = cost >> below & ((UINT32_C(1) << bits) - 1);
    return level == DECIDE_CORES ? value - 1 : value; /* stored plus one */
}

enum decide_level decide_level_between(uint32_t a, uint32_t b, bool nics)
{
    enum decide_level l = DECIDE_RELATION;
    while (l < DECIDE_LEVELS &&
           decide_level_value(a, l, nics) == decide_level_value(b, l, nics))
        l++;
    return l;
}

const char *decide_level_word(enum decide_level level)
{
    static const char *const words[] = {
        [DECIDE_RELATION] = "relation", [DECIDE_SPREAD] = "spread",
        [DECIDE_DAMAGE] = "damage",     [DECIDE_IDLE] = "idle",
        [DECIDE_NICS] = "nics",         [DECIDE_CORES] = "cores",
        [DECIDE_LEVELS] = "name",
    };
    return (unsigned)level <= DECIDE_LEVELS ? words[level] : "";
}
