/* quota - whether a namespace may have more of the cards than it has, and the
 * devices that are asked for
 * (schema/policy.md).  Pure. */
#ifndef BIGA_EXTENDER_STATE_QUOTA_H
#define BIGA_EXTENDER_STATE_QUOTA_H

#include <stdint.h>

#include "extender/state/snapshot.h"
#include "lib/base/str.h"
#include "model/pod/demand.h"

enum quota_kind {
    QUOTA_OK,
    QUOTA_CARDS,
    QUOTA_CORES,
    QUOTA_MEMORY,
    QUOTA_UNSTATED_CORES, /* cores are limited, and it does not state any */
    QUOTA_UNSTATED_MEMORY,
    QUOTA_DEVICES, /* it asks for sets that the namespace may not have */
};
struct quota_verdict {
    enum quota_kind kind;
    uint64_t used, limit, asked;         /* `asked` on top of `used` */
    struct device_sets devices, allowed; /* QUOTA_DEVICES: what it asks for, and
                                          * what the namespace may have */
};

/* May a pod, whose pair has no place yet, have what it asks?  For a planned
 * pod: may its job have all pairs that have no place yet?  `former`: what is
 * allocated to its own name and ends with it, or NULL. */
void quota_judge(const struct snapshot *s, const struct demand *pod,
                 const struct allocation *former,
                 struct quota_verdict *ret_verdict);
/* May this allocation be made (in place of `former`), beside what its pair
 * has? */
void quota_judge_allocation(const struct snapshot *s,
                            const struct allocation *fresh,
                            const struct allocation *former,
                            struct quota_verdict *ret_verdict);

/* "quota of namespace team-a: 60 of 64 cards used, 8 more asked", or "namespace
 * team-a may have the devices "rdma" of cards, and "snap" is asked for: …" */
void quota_explain(const char *namespace, const struct quota_verdict *verdict,
                   struct str *out);

#endif
