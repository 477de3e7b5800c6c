/* rights - what pods may ask for beyond what every pod has: the operator says
 * so, as a pod that is privileged has the place that it runs on.  Pure. */
#ifndef BIGA_MODEL_POD_RIGHTS_H
#define BIGA_MODEL_POD_RIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/str.h"
#include "model/pod/podspec.h"

struct rights {
    bool privileged; /* and so any capability */
    bool host_pid, host_ipc;
    uint64_t capabilities; /* a bit each, numbered as in Linux */
};

/* What is granted: words with "," between, "privileged", "host-pid",
 * "host-ipc", a capability as in "NET_ADMIN", or "ALL" for every one;
 * NULL or "": nothing.  -EINVAL names the word. */
int rights_parse(const char *text, struct rights *ret_rights,
                 struct error *err);

/* The bits of card_rights.h: of what is granted, beside what every pod has; of
 * a capability by its name, ANY_CAPABILITY for one that is not known.  Usual
 * ones have none. */
uint64_t rights_bits(const struct rights *rights);
uint64_t rights_capability_bits(const char *name, size_t size);
/* As they are given by --allow. */
void rights_bits_add(uint64_t bits, struct str *out);

/* Grant one capability more, as in "IPC_LOCK". */
void rights_add(struct rights *rights, const char *name);

/* 0 when the pod asks for nothing else; -EPERM names the member, its value and
 * the setting that would allow it. */
int rights_check(const struct rights *rights, const struct podspec *spec,
                 struct error *err);

/* What a container, or whoever runs it, asks for. */
struct rights_asked {
    bool host_pid, host_ipc, privileged;
    const char *const *cap_add; /* "NET_ADMIN" … */
    size_t n_cap_add;
};
/* The same of that; `path` is what errors call it. */
int rights_check_asked(const struct rights *rights,
                       const struct rights_asked *asked, const char *path,
                       struct error *err);

#endif
