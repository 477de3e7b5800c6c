/* What intents.c (the intents, and their texts) gives to intents_db.c (the
 * database). */
#ifndef BIGA_ADVERTISER_ACT_INTENTS_PRIVATE_H
#define BIGA_ADVERTISER_ACT_INTENTS_PRIVATE_H

#include "advertiser/act/intents.h"
#include "model/base/str.h"

void intent_env_encode(const struct intent *i, struct str *out);
int intent_env_decode(struct intent *i, const char *text, size_t size,
                      struct error *err);
void intent_progress_encode(const struct intent *i, struct str *out);
int intent_progress_decode(struct intent *i, const char *text, size_t size,
                           struct error *err);

#endif
