/* What the files of claim_book share.  Whoever calls these holds the lock. */
#ifndef BIGA_EXTENDER_CLAIMS_CLAIM_BOOK_PRIVATE_H
#define BIGA_EXTENDER_CLAIMS_CLAIM_BOOK_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "extender/claims/claim_book.h"
#include "lib/base/strmap.h"
#include "lib/kube/collection.h"
#include "model/claim/claim_spec.h"
#include "model/claim/claim_status.h"
#include "model/claim/claim_template.h"

/* The first member of what is kept of any object. */
struct book_object {
    struct collected in;
    char *key; /* "NAME", or "NAMESPACE/NAME" */
};

/* One collection; ctx of its handler. */
struct book_kind {
    struct claim_book *book;
    enum claim_book_kind kind;
    struct strmap objects;
    bool full; /* it was logged that there is no room */
};

/* Told once the lock is free. */
struct book_note {
    struct claim_use *use; /* NULL: only `changed` */
    bool gone;
    char *namespace, *name, *owner; /* NULL: only `used` */
};

struct claim_book {
    struct claim_book_config config;
    pthread_mutex_t lock;
    struct book_kind kinds[CLAIM_BOOK_KINDS];
    struct strmap pools; /* struct book_pool */
    struct strmap nodes; /* struct book_node */
    size_t slices_size;  /* bytes of JSON */
    uint32_t n_slots;    /* of nodes; free ones are used again */
    uint32_t *free_slots;
    size_t n_free, free_cap;
    uint32_t epoch;           /* grows with each change of a node's slices */
    uint32_t classes_epoch;   /* of classes */
    _Atomic uint64_t version; /* claim_book_version() */
    struct strmap rules;      /* struct book_rule; a reference each */
    bool classes_changed;     /* and it was not told yet */
    struct book_note *notes;
    size_t n_notes, notes_cap;
};

/* --- slices: claim_book_slices.c ------------------------------------------ */
struct book_claim;

struct book_slice {
    struct book_object object;
    struct claim_slice *slice;
    struct book_pool *pool;
    uint64_t hash; /* of its JSON's spec */
    size_t size;
};
/* All slices of one pool, and who has devices of it. */
struct book_pool {
    char *key; /* "DRIVER/POOL" */
    struct book_slice **slices;
    size_t n, cap;
    struct book_claim **claims;
    size_t n_claims, claims_cap;
};
struct book_node {
    char *name;
    struct book_slice **slices; /* with devices of this node alone */
    size_t n, cap;
    uint32_t slot, epoch;
};

/* 0, also for one that need not be kept. */
int book_put_slice(struct book_kind *k, const char *key, const char *json,
                   size_t size, struct error *err);
void book_drop_slice(struct claim_book *b, struct book_object *object);
/* Does a slice count: of the newest generation of a pool that is whole? */
bool book_slice_counts(const struct book_slice *s);
/* The node that has the device, "" when several may get at it. */
const char *book_device_node(const struct claim_slice *slice,
                             const struct claim_device *device);
/* A device by name, the newest of that name; NULL: it is not (yet) there. */
const struct claim_device *book_find_device(const struct book_pool *p,
                                            const char *name,
                                            const struct claim_slice **ret);
struct book_pool *book_pool_get(struct claim_book *b, const char *driver,
                                const char *pool);
/* Free it once nothing is in it. */
void book_pool_put(struct claim_book *b, struct book_pool *p);

/* --- claims: claim_book_claims.c ------------------------------------------ */
int book_put_claim(struct book_kind *k, const char *key, const char *json,
                   size_t size, struct error *err);
void book_drop_claim(struct claim_book *b, struct book_object *object);
/* A pool's slices have changed. */
void book_settle_pool(struct claim_book *b, struct book_pool *p);
/* A copy of the spec's JSON that the caller frees; NULL: there is no such
 * claim. */
char *book_claim_spec(struct claim_book *b, const char *namespace,
                      const char *name, struct claim_fate *ret_fate);

/* --- rules: claim_book_rules.c -------------------------------------------- */

/* A spec that templates and needs share; immutable. */
struct book_spec {
    atomic_uint refs;
    struct claim_spec *spec;
};
struct book_spec *book_spec_create(struct claim_spec *spec); /* takes it over */
struct book_spec *book_spec_ref(struct book_spec *s);
void book_spec_unref(struct book_spec *s); /* NULL allowed */

enum need_kind { NEED_UNKNOWN, NEED_CARD, NEED_GPU, NEED_NIC };

/* What requests with the same class, selectors, tolerations and constraints
 * are allowed; requests are alike in all pods of a template. */
struct book_rule {
    atomic_uint refs;
    char *key;
    struct book_spec *spec;
    const struct claim_request *request;
    enum need_kind kind;
    uint32_t classes_epoch; /* that `kind` and the verdicts are of */
    struct verdict {
        uint32_t epoch; /* of the node; 0: none */
        struct claim_allowed allowed;
        uint64_t topo; /* a hash of the node's content hash */
    } * verdicts;      /* by slot */
    size_t n_verdicts;
};
/* The caller owns the reference. */
struct book_rule *book_rule_get(struct claim_book *b, struct book_spec *spec,
                                const struct claim_request *request);
struct book_rule *book_rule_ref(struct book_rule *r);
void book_rule_unref(struct book_rule *r); /* NULL allowed */
/* NULL: there is none. */
const struct claim_class *book_class(struct claim_book *b, const char *name);
/* What the request selects, whoever has it; -EDOM with the reason when it is
 * nothing that we know. */
int book_rule_classify(struct claim_book *b, struct book_rule *r,
                       const struct snapshot *s, struct error *err);
/* Is the device one that the request may be given? */
bool book_rule_allows(struct claim_book *b, const struct book_rule *r,
                      const struct claim_device *device, const char *driver,
                      struct error *why);
/* The bits of a node's topology. */
struct claim_allowed book_rule_bits(struct claim_book *b, struct book_rule *r,
                                    const struct node *node, struct error *why);
/* Does a device of another driver stand for this one of the topology? */
bool book_device_is(const struct claim_device *device, const struct device *d);
/* "pci0000:16" */
bool book_root_parse(const char *text, uint32_t *ret_domain, uint8_t *ret_bus);

/* --- templates and classes: claim_book.c ---------------------------------- */
struct book_template {
    struct book_object object;
    struct book_spec *spec; /* NULL: it cannot be read */
    struct error bad;
    char *labels, *annotations;
};

/* --- needs: claim_book_read.c --------------------------------------------- */
/* A pod has at most POD_CLAIMS_MAX claims of CLAIM_REQUESTS_MAX requests. */
struct need_claim {
    char *name, *made;
    struct book_spec *spec;
    char *labels, *annotations;
};
struct need_request {
    uint8_t claim, count; /* index of the claim; devices */
    enum need_kind kind;
    const struct claim_request *request; /* of its claim's spec */
    struct book_rule *rule;              /* of all requests alike */
};
struct claim_needs {
    atomic_uint refs;
    size_t n_claims, n_requests;
    struct need_claim *claims;
    struct need_request *requests;
    unsigned cards, gpus;
};

#endif
