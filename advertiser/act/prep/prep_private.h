/* prep_private - the parts of prep.h.  Each returns 0 when it was carried
 * out or refused, as `o` says (o->reason is "" before), else as prep_run(). */
#ifndef BIGA_ADVERTISER_ACT_PREP_PREP_PRIVATE_H
#define BIGA_ADVERTISER_ACT_PREP_PREP_PRIVATE_H

#include "advertiser/act/prep/prep.h"

int prep_vfs(const struct prep_config *config,
             const struct prep_request *request, struct prep_outcome *o,
             struct error *err);
int prep_sfs(const struct prep_config *config,
             const struct prep_request *request, struct prep_outcome *o,
             struct error *err);
int prep_hook(const struct prep_config *config,
              const struct prep_request *request, struct prep_outcome *o,
              struct error *err);

/* What becomes part of paths is as prep.h says. */
int prep_check_card(const struct prep_request *request, struct error *err);

/* Fill in reason (a constant, "" for none) and message; returns 0. */
int prep_say(struct prep_outcome *o, const char *reason, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
