/* listing_private - what the files of a listing share. */
#ifndef BIGA_CLI_BASE_LISTING_PRIVATE_H
#define BIGA_CLI_BASE_LISTING_PRIVATE_H

#include "cli/base/listing.h"

/* A table with its columns, of which the wide ones may be hidden. */
void listing_begin(struct table *t, const struct listing *l, bool wide);

/* What is new, different or gone since c->seen, which is brought up to date. */
void listing_changes(struct cli *c, const cJSON *list, const struct listing *l);

#endif
