/* usage_book - from what the containers of a runtime have used so far to what
 * its pods, and all of it, use now; and when that is worth telling.  Pure.
 *
 * Cores are known from the second look at a container on.  What is shown
 * changes only when it differs noticeably: by a tenth, and by more than a
 * little.  It is told again when it stays, for whoever is told forgets. */
#ifndef BIGA_ADVERTISER_ACT_USAGE_USAGE_BOOK_H
#define BIGA_ADVERTISER_ACT_USAGE_USAGE_BOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "advertiser/act/card/card.h"
#include "advertiser/cri/cri.h"

enum {
    USAGE_CORES_LEAST = 50,  /* millicores, and */
    USAGE_MEMORY_LEAST = 16, /* MiB, by which it must differ to be told */
    USAGE_AGAIN_MS = 30000,  /* what stays is told again: an extender forgets it
                              * after a minute */
};

struct usage_now {
    uint64_t cpu_millicores, memory_mib;
    int64_t at_s;     /* since 1970: when it became that */
    int64_t told_ms;  /* by the monotonic clock: of its version */
    uint64_t version; /* of the book when it was to be told last; 0: never */
    bool known;
};

struct usage_pod {
    char uid[ACT_UID_MAX + 1];
    struct usage_now shown;
    bool seen; /* in this look */
    bool known;
    uint64_t cpu_millicores, memory; /* bytes */
};
struct usage_sample {
    char id[CRI_ID_MAX + 1];
    uint64_t cpu_ns;
    int64_t at_ns;
};
/* Of one runtime. */
struct usage_book {
    struct usage_pod all;   /* the runtime's, without a uid */
    struct usage_pod *pods; /* in order of their uid */
    size_t n_pods, cap_pods;
    struct usage_sample *samples; /* in order of their id */
    size_t n_samples;
    bool looked; /* before */
};
void usage_book_fini(struct usage_book *b); /* of zeros: nothing */

struct usage_time {
    int64_t ms;     /* monotonic */
    int64_t wall_s; /* since 1970 */
};
/* A look at it.  What is to be told since has a version above `version`; true
 * when something is. */
bool usage_book_take(struct usage_book *b, const struct cri_usages *now,
                     struct usage_time time, uint64_t version);
/* It does not answer: nothing is known until the next look.  The same. */
bool usage_book_lose(struct usage_book *b, struct usage_time time,
                     uint64_t version);
/* NULL: it never was known. */
const struct usage_now *usage_book_find(const struct usage_book *b,
                                        const char *uid);

#endif
