#include "model/pod/demand_ident.h"

#include "lib/base/jwrite.h"

struct demand_ident demand_ident_of(const struct demand *d)
{
    return (struct demand_ident){.namespace = d->namespace,
                                 .name = d->name,
                                 .uid = d->uid,
                                 .job = d->job,
                                 .role = d->role,
                                 .pair = d->pair};
}

void demand_ident_write(const struct demand_ident *pod, struct str *out)
{
    jwrite_text(out, "namespace", pod->namespace);
    jwrite_text(out, "name", pod->name);
    jwrite_text(out, "uid", pod->uid);
    jwrite_text(out, "role", pod_role_name(pod->role));
    jwrite_text(out, "job", pod->job);
    jwrite_int(out, "pair", pod->pair);
}
