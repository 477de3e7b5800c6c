/* sf_record - which scalable function of a card is whose, in a file that is
 * written before one is made, so that whoever comes after a crash finds it again
 * and makes no other:
 *
 *     {"sfs":[{"uid":"…","sfnum":32768}]} */
#ifndef BIGA_ADVERTISER_ACT_PREP_SF_RECORD_H
#define BIGA_ADVERTISER_ACT_PREP_SF_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"

enum {
    SF_UID_MAX = 63,
    SF_ENTRIES_MAX = 1024,
    SF_FIRST = 32768, /* numbers from here … */
    SF_LAST = 65535,  /* … to here are ours */
};

struct sf_entry {
    char uid[SF_UID_MAX + 1]; /* of the pod */
    uint32_t sfnum;
};
struct sf_record {
    char *path;
    struct sf_entry *list;
    size_t n, cap;
};

/* Into an empty one with a path; a file that is not there is one of nobody.
 * Errors name the file. */
int sf_record_load(struct sf_record *r, struct error *err);
/* Durable when it returns 0; of nobody: the file goes. */
int sf_record_store(const struct sf_record *r, struct error *err);
void sf_record_add(struct sf_record *r, const struct sf_entry *e);
void sf_record_fini(struct sf_record *r);

#endif
