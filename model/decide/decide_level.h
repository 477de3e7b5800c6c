/* decide_level - a cost taken apart: what two choices differ in, in the words of
 * schema/decision.md.  Pure. */
#ifndef BIGA_MODEL_DECIDE_DECIDE_LEVEL_H
#define BIGA_MODEL_DECIDE_DECIDE_LEVEL_H

#include <stdbool.h>
#include <stdint.h>

/* In the order of preference. */
enum decide_level {
    DECIDE_RELATION,
    DECIDE_SPREAD,
    DECIDE_DAMAGE,
    DECIDE_IDLE,
    DECIDE_NICS,
    DECIDE_CORES,
    DECIDE_LEVELS, /* none of them: the names of the nodes */
};

/* The first level in which two costs of one demand differ (`nics`: it asks for
 * some).  DECIDE_LEVELS: they are equal. */
enum decide_level decide_level_between(uint32_t a, uint32_t b, bool nics);
/* What a cost has at a level: relations as enum relation; what is more than
 * its width is its highest value. */
uint32_t decide_level_value(uint32_t cost, enum decide_level level, bool nics);
/* "relation" … "cores"; "name" */
const char *decide_level_word(enum decide_level level);

#endif
