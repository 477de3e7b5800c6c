/* What achieved.c, which compares, and achieved_say.c, which puts it in words,
 * share. */
#ifndef BIGA_EXTENDER_ACHIEVED_ACHIEVED_PRIVATE_H
#define BIGA_EXTENDER_ACHIEVED_ACHIEVED_PRIVATE_H

#include "extender/achieved/achieved.h"

/* How what it has compares with what it was promised. */
enum fit {
    FIT_FREE,   /* nothing was promised */
    FIT_SAME,   /* it has it, and may have more */
    FIT_OTHER,  /* it lacks some of it, and has others */
    FIT_NONE,   /* it has none */
    FIT_ODD,    /* it has some that its node has not published */
    FIT_LOOSE,  /* of CPUs: not on the NUMA node alone */
    FIT_UNTOLD, /* not known */
};

/* Devices of a node, by index; `known`: these are all. */
struct devices {
    bool known;
    unsigned n;
    size_t at[ACHIEVED_DEVICES_MAX];
};

/* One pod under judgement; all is borrowed. */
struct judged {
    const struct snapshot *snapshot;
    const struct topo *topo; /* NULL: not known */
    const struct allocation *allocation;
    const struct achieved_report *report; /* NULL: none */
    const struct achieved_facts *facts;   /* NULL: none */
    enum fit cards, gpus, nics, cpus, memory;
    bool elsewhere; /* its pair is on another card, which is farther */
    enum relation relation, nic_relation; /* RELATION_COUNT: not known */
    struct devices pair_cards;
};

/* What is not as promised, or not known. */
void achieved_say(const struct judged *j, struct str *out);

#endif
