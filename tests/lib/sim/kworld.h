/* kworld - one node "h", its advertisers and a simulated API server, in virtual
 * time, for the tests of publish_kube.  After every change of anything a
 * reader looks at the pool: it must be whole and a topology that was to be
 * published, or nothing. */
#ifndef BIGA_TESTS_LIB_SIM_KWORLD_H
#define BIGA_TESTS_LIB_SIM_KWORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "advertiser/publish/kube_objects.h"
#include "advertiser/publish/publish.h"
#include "advertiser/publish/publisher.h"
#include "tests/lib/sim/simkube.h"

/* Parts of paths, as simkube.h takes them. */
#define KWORLD_SLICE PUBLISH_COLLECTION "/h-"
#define KWORLD_LEASE "/leases/h"
#define KWORLD_NODE "/nodes/h"

enum { KWORLD_LOG_MAX = 8192, KWORLD_HASHES_MAX = 64 };

struct kworld_notice {
    char name[SLICE_NAME_MAX + 1], version[KUBE_OBJECTS_TEXT_MAX + 1];
    bool gone;
};

/* There is one, made anew for each test. */
extern struct kworld {
    int64_t now;
    struct simkube *kube;
    bool down; /* no answer at all */
    char lost; /* the answer to the next call of this method; 0: none is */
    struct {
        int64_t at;
        char method; /* G, O (post), P, A (patch), D, L (list) */
        char path[PUBLISH_PATH_MAX];
    } log[KWORLD_LOG_MAX];
    size_t n_log;
    char hashes[KWORLD_HASHES_MAX][17]; /* of what was ever to be published */
    size_t n_hashes;
    bool foreign; /* what is there is not only ours: no reader looks */
    struct kworld_notice notices[KWORLD_LOG_MAX]; /* not yet delivered */
    size_t n_notices;
} kworld;
extern const struct publish_config kworld_config;

void kworld_begin(void);
void kworld_end(void);
/* As the reader does; its context is not used. */
void kworld_look(void *ctx);
/* What was sent since `from`, as "GGOLOA". */
const char *kworld_sent(size_t from);

/* --- advertisers -------------------------------------------------------- */

/* One with so many NICs of this model: 64 to a slice. */
struct publisher *kworld_start(const struct publish_config *config,
                               unsigned n_nics, const char *model);
/* The same, as a topology that may be published from now on. */
struct topo *kworld_make_topo(unsigned n_nics, const char *model);
void kworld_update(struct publisher *f, unsigned n_nics, const char *model);
/* Let time go on until `until`, for one or two fleets. */
void kworld_run_until(struct publisher *f, int64_t until);
void kworld_run_both(struct publisher *f, struct publisher *g, int64_t until);
/* From now on the first of them has a watch. */
void kworld_watch(void);
void kworld_deliver(struct publisher *f);

/* --- what is there ------------------------------------------------------ */

int64_t kworld_generation(void); /* of the pool, which is whole */
const char *kworld_annotation(const char *part, const char *name);
const char *kworld_holder(void); /* of the Lease */
/* The Node says what the slices are. */
void kworld_assert_told(void);

/* --- what others do ----------------------------------------------------- */

void kworld_edit_spec(const char *part, size_t n);
void kworld_set_generation(const char *part, double value);
/* A slice of our driver and node that nobody asked for. */
void kworld_add_foreign(const char *name);

#endif
