/* The names of the fabric's tiers. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "model/fabric/fabric.h"

static const char *const tiers[FABRIC_TIERS_MAX] = {
    "leaf", "spine", "core", "tier-3", "tier-4", "tier-5", "tier-6", "tier-7",
};

const char *fabric_tier_name(unsigned tier)
{
    return tier < FABRIC_TIERS_MAX ? tiers[tier] : "apart";
}

int fabric_tier_parse(const char *text, struct error *err)
{
    char plain[16];
    for (unsigned t = 0; t < FABRIC_TIERS_MAX; t++) {
        (void)snprintf(plain, sizeof plain, "tier-%u", t);
        if (strcasecmp(text, tiers[t]) == 0 || strcasecmp(text, plain) == 0)
            return (int)t;
    }
    return error_set(err, EINVAL,
                     "is \"%.48s\", must be \"leaf\", \"spine\", \"core\" or "
                     "\"tier-N\" with N from 0 to %d",
                     text, FABRIC_TIERS_MAX - 1);
}
