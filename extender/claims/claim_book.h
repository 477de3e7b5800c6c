/* claim_book - what the API server has of Dynamic Resource Allocation, as far
 * as Biga has to know it: devices of all drivers, claims, templates, classes.
 *
 *   reflector ─▶ handlers ─▶ book ── what claims have ──▶ writer (WRITER_CLAIM)
 *                             │
 *               any thread ───┴─▶ what a pod's claims ask, which devices they
 *                                 allow, how they are pinned, how they fare
 *
 * Handlers run on the reflector's thread; all else may be called by any
 * thread.  One lock, never held over I/O or a call out.
 *
 * Memory: of ResourceSlices all that they say is kept, some 35 KB a node of
 * eight cards and GPUs, and at most CLAIM_BOOK_SLICES_MAX bytes of JSON; of our
 * own only those with cards by claims; of a claim some 2 KB.  What is beyond
 * the limits is left out, and logged once. */
#ifndef BIGA_EXTENDER_CLAIMS_CLAIM_BOOK_H
#define BIGA_EXTENDER_CLAIMS_CLAIM_BOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "extender/state/claim_use.h"
#include "extender/state/snapshot.h"
#include "lib/base/error.h"
#include "lib/base/str.h"
#include "lib/kube/reflector.h"
#include "model/pod/demand.h"

#define CLAIM_BOOK_DRIVER "xpu.biga.dev" /* whose cards are ours */
#define CLAIM_BOOK_SLICES_MAX ((size_t)1 << 30)
enum {
    CLAIM_BOOK_CLAIMS_MAX = 1 << 20,
    CLAIM_BOOK_CLASSES_MAX = 4096,
    CLAIM_BOOK_TEMPLATES_MAX = 1 << 16,
};

struct claim_book;

struct claim_book_config {
    /* What an allocated claim has now; `gone`: nothing any more (its key alone
     * counts).  The reflector's thread, in order.  A reference is taken by
     * whoever keeps it. */
    void (*used)(void *ctx, struct claim_use *use, bool gone);
    /* A claim came, changed or went.  The reflector's thread; may be NULL.
     * `owner`: uid of the pod that owns it, or "". */
    void (*changed)(void *ctx, const char *namespace, const char *name,
                    const char *owner);
    /* Classes have changed: the resources that they give by name
     * (spec.extendedResourceName, deviceclass.resource.kubernetes.io/NAME).  The
     * same; borrowed. */
    void (*classes)(void *ctx, const char *const *resources, size_t n);
    void *ctx;
};
struct claim_book *claim_book_create(const struct claim_book_config *config);
/* After the reflector has ended. NULL allowed */
void claim_book_destroy(struct claim_book *b);

/* --- the collections ------------------------------------------------------ */
enum claim_book_kind {
    CLAIM_BOOK_OWN_SLICES, /* ResourceSlices of CLAIM_BOOK_DRIVER */
    CLAIM_BOOK_SLICES,     /* of all others */
    CLAIM_BOOK_CLAIMS,
    CLAIM_BOOK_CLASSES,
    CLAIM_BOOK_TEMPLATES,
    CLAIM_BOOK_KINDS
};
extern const struct reflector_handler claim_book_handler;
/* The handler's ctx for that collection. */
void *claim_book_ctx(struct claim_book *b, enum claim_book_kind kind);
/* Grows when a device, class or template changes: a pod whose claims could not
 * be read is worth another look. */
uint64_t claim_book_version(const struct claim_book *b);

/* --- what a pod's claims ask ---------------------------------------------- */

/* What was read of a pod's claims; immutable, ref-counted. */
struct claim_needs;
struct claim_needs *claim_needs_ref(struct claim_needs *needs);
void claim_needs_unref(struct claim_needs *needs); /* NULL allowed */
DEFINE_CLEANUP(claim_needs, struct claim_needs *, claim_needs_unref)

/* Read the claims that a pod (its JSON) is to get, and join them into its
 * demand, which demand_read() has filled and which has a role:
 *   cards, by_claim            as many as its requests for cards count
 *   has_card_need, cores, MiB  when every one of them states both; else
 *   exclusive                  each card is claimed whole
 *   gpus                       as many as its requests for GPUs count; what the
 *                              pod says of them itself must be the same
 *   align                      at most PHB, PIX or NODE, as a constraint with
 *                              matchAttribute on pcieRoot, biga.dev/switch or
 *                              numaNode binds a card to a GPU or card
 * A request is for what its class and selectors select on some node: cards of
 * ours, or devices at the PCI address of a GPU or a NIC in the snapshot.  One
 * that selects none of these is refused `at_gate`, where Biga alone picks the
 * node; else it is left to kube-scheduler, unless it names CLAIM_BOOK_DRIVER.
 *
 * 0, and NULL for a pod without claims; -EDOM: they cannot be planned, with the
 * claim, the request, what is wrong and what would help; -EINVAL: no pod.
 * `demand` is as it was then. */
int claim_book_read(struct claim_book *b, const struct snapshot *s,
                    const char *json, size_t size, bool at_gate,
                    struct demand *demand, struct claim_needs **ret_needs,
                    struct error *err);
/* Does it claim cards, GPUs?  How many. */
unsigned claim_needs_cards(const struct claim_needs *needs); /* NULL allowed */
unsigned claim_needs_gpus(const struct claim_needs *needs);
/* -EDOM when both pods of a pair claim cards: a card is to be counted once. */
int claim_needs_check_pair(const struct claim_needs *host,
                           const struct claim_needs *xpu, struct error *err);

/* The cards and GPUs of a node, by bit of its topology, that the pod's classes
 * and selectors allow: published in a whole pool, without a taint that it does
 * not tolerate, and with the attributes that its constraints compare.  All
 * bits of a kind of which it claims none; where requests differ, devices that
 * all of that kind allow.  Who has them is not looked at.  False when there
 * are none of a kind that is needed; then `why` (NULL allowed) says what is
 * wrong with one, for people. */
struct claim_allowed {
    uint16_t cards, gpus;
};
bool claim_book_allows(struct claim_book *b, struct claim_needs *needs,
                       const struct node *node,
                       struct claim_allowed *ret_allowed, struct error *why);

/* --- pins ----------------------------------------------------------------- */

/* One claim of the pod as it is to be created. */
struct claim_book_pin {
    char name[DEMAND_NAME_MAX + 1]; /* the pod's own for it */
    char made[DEMAND_NAME_MAX + 1]; /* the claim that the pod's status named
                                     * when it was read; "" none yet */
    struct str spec;   /* JSON: the template's, with its devices pinned */
    struct str labels; /* JSON objects of the template's metadata; or "" */
    struct str annotations;
    bool pinned; /* has any pin; else the claim may stay as it is */
};
enum { CLAIM_BOOK_PINS_MAX = 32 };
struct claim_book_pins {
    size_t n;
    struct claim_book_pin items[CLAIM_BOOK_PINS_MAX];
};
void claim_book_pins_fini(struct claim_book_pins *pins); /* zeroed: allowed */
#define cleanup_claim_book_pins \
    __attribute__((__cleanup__(claim_book_pins_fini)))

/* Give each request its devices of the allocation, which is on that node, so
 * that constraints hold.
 * Requests for NICs and what a GPU's driver does not publish are left to
 * kube-scheduler.  0; -EDOM: they cannot be given so, with the request or
 * constraint.  The caller calls claim_book_pins_fini() in both cases. */
int claim_book_pin(struct claim_book *b, const struct claim_needs *needs,
                   const struct node *node, const struct allocation *a,
                   struct claim_book_pins *ret_pins, struct error *err);

/* --- how a claim fares ---------------------------------------------------- */
struct claim_fate {
    bool allocated, deleting;
    bool is_pinned;    /* Biga made it */
    char pinned[256];  /* its annotation CLAIM_PINNED_KEY, cut */
    size_t n_reserved; /* consumers */
    char uid[DEMAND_UID_MAX + 1];
    char owner[DEMAND_UID_MAX + 1];      /* uid of the pod; "" none */
    char pod_claim[DEMAND_NAME_MAX + 1]; /* that pod's name for it; "" */
    char node[DEMAND_NAME_MAX + 1];      /* allocated: where; "" not known */
    char version[64];                    /* resourceVersion */
};
/* False when the watch has not shown a claim of that name. */
bool claim_book_find(struct claim_book *b, const char *namespace,
                     const char *name, struct claim_fate *ret_fate);
/* All claims that a pod owns, at most `max` names.  Returns how many there
 * are. */
size_t claim_book_owned(struct claim_book *b, const char *owner,
                        char (*ret_names)[DEMAND_NAME_MAX + 1], size_t max);

#endif
