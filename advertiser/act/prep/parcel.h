/* parcel - what biga-card (card/card.h) is told to do for the volumes of a
 * pod: its arguments.  Pure. */
#ifndef BIGA_ADVERTISER_ACT_PREP_PARCEL_H
#define BIGA_ADVERTISER_ACT_PREP_PARCEL_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "model/pod/podspec.h"

enum { PARCEL_PAD_ID_SIZE = 32 + 1 };

struct parcel {
    const char **argv; /* not NULL-terminated */
    size_t n, cap;
    struct arena arena;
};
/* biga-card's word, and the pod's folder. */
void parcel_init(struct parcel *p, const char *word, const char *dir);
void parcel_fini(struct parcel *p);
void parcel_add(struct parcel *p, const char *text);

/* Bytes of all files of the pod. */
size_t parcel_contents(const struct podspec *spec);
/* Has it a volume in the card's memory, or one that is not? */
bool parcel_has(const struct podspec *spec, bool in_memory);

/* The random bytes that hide the contents. */
struct parcel_pad {
    char id[PARCEL_PAD_ID_SIZE];
    const char *bytes;
    size_t size;
};
/* From what `pad DIR SIZE` wrote; borrows `out`.  -EPROTO. */
int parcel_pad(const struct str *out, const struct str *err_text, size_t size,
               struct parcel_pad *ret_pad, struct error *err);

/* After "files DIR": volumes as folders below DIR/volumes, and their files.
 * `pad` has parcel_contents() bytes; NULL: the pod has no contents. */
void parcel_files(struct parcel *p, const struct podspec *spec,
                  const struct parcel_pad *pad);
/* After "memory DIR": volumes in memory, as folders below DIR. */
void parcel_memory(struct parcel *p, const struct podspec *spec);

#endif
