/* podfeed - how much goes between the extender and a node (schema/actuator.md):
 * what one of them writes at most is what the other reads. */
#ifndef BIGA_MODEL_POD_PODFEED_H
#define BIGA_MODEL_POD_PODFEED_H

enum {
    PODFEED_PODS_MAX = 4096,     /* items of one answer */
    PODFEED_SPEC_MAX = 1 << 20,  /* bytes of an item's spec */
    PODFEED_FILES_MAX = 2 << 20, /* bytes of an item's files, as JSON */
    PODFEED_FAULT_MAX = 2048,    /* bytes of an item's fault */
    PODFEED_KEPT_MAX = 64, /* UIDs of which is asked whether they are kept */
    PODFEED_ANSWER_MAX = 64 << 20, /* bytes of a whole answer */
};

#endif
