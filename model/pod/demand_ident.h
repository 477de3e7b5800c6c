/* demand_ident - which pod, and which of a job's pods, as every answer says it.
 * Pure. */
#ifndef BIGA_MODEL_POD_DEMAND_IDENT_H
#define BIGA_MODEL_POD_DEMAND_IDENT_H

#include "lib/base/str.h"
#include "model/pod/demand.h"

struct demand_ident { /* texts are borrowed */
    const char *namespace, *name, *uid, *job;
    enum pod_role role;
    int32_t pair;
};
struct demand_ident demand_ident_of(const struct demand *d);

/* Members (no braces): "namespace", "name", "uid", "role", "job", "pair". */
void demand_ident_write(const struct demand_ident *pod, struct str *out);

#endif
