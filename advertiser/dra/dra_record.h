/* dra_record - what was prepared for a ResourceClaim: its cards, and for which
 * of its requests.  It is read from the claim itself, as the API server has it,
 * and from the file in which it is written down.  Pure.
 *
 *     {"version":1,"uid":"6b0c…","namespace":"default","name":"pair-0-card",
 *      "pod-claim":"card","devices":[{"request":"card","pool":"host0",
 *                  "device":"card-0000-17-00","share":"","admin":false}]}
 */
#ifndef BIGA_ADVERTISER_DRA_DRA_RECORD_H
#define BIGA_ADVERTISER_DRA_DRA_RECORD_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "model/topo/pci.h"

enum {
    DRA_UID_MAX = 63,
    DRA_NAMESPACE_MAX = 63,
    DRA_NAME_MAX = 253,
    DRA_POD_CLAIM_MAX = 63,
    DRA_REQUEST_MAX = 127, /* "request/subrequest" */
    DRA_DEVICE_MAX = 63,
    DRA_DEVICES_MAX = 32,      /* of a claim, as DRA has it */
    DRA_RECORD_MAX = 64 << 10, /* bytes of the file */
    DRA_CDI_ID_MAX = 192,
    DRA_CORES_MAX = 31,
};

#define DRA_DRIVER "xpu.biga.dev"
#define DRA_CDI_KIND DRA_DRIVER "/card"

/* One result of its allocation. */
struct dra_device {
    char request[DRA_REQUEST_MAX + 1]; /* without a subrequest */
    char pool[DRA_NAME_MAX + 1];
    char device[DRA_DEVICE_MAX + 1]; /* "card-0000-17-00" */
    char share[DRA_UID_MAX + 1];     /* of consumable capacity; "" whole */
    bool admin; /* looks at what others have (adminAccess) */
    char
        cores[DRA_CORES_MAX + 1]; /* of a claim: what it takes of the card's, as
                                    * a quantity; "" it does not say */
    /* Of a record: others may have the rest of the card, and which of its
     * virtual functions they have not; "" it got none. */
    bool part;
    char function[PCI_ADDR_TEXT_MAX];
};

struct dra_record {
    char uid[DRA_UID_MAX + 1];
    char namespace[DRA_NAMESPACE_MAX + 1];
    char name[DRA_NAME_MAX + 1];
    char pod_claim[DRA_POD_CLAIM_MAX + 1]; /* what its pod calls it; "" of one
                                            * that was not made for a pod */
    bool allocated;                        /* of a claim: it is */
    struct dra_device *devices; /* of our driver alone; several requests may
                                 * have shares of one card */
    size_t n_devices;
};

void dra_record_destroy(struct dra_record *r); /* NULL allowed */
DEFINE_CLEANUP(dra_record, struct dra_record *, dra_record_destroy)

/* A ResourceClaim of the API server.  -EINVAL names the member. */
int dra_record_of_claim(const char *json, size_t size,
                        struct dra_record **ret_record, struct error *err);
/* A file of ours, strictly; and the other way. */
int dra_record_parse(const char *json, size_t size,
                     struct dra_record **ret_record, struct error *err);
void dra_record_write(const struct dra_record *r, struct str *out);

bool dra_record_equal(const struct dra_record *a, const struct dra_record *b);

/* May it be part of a file's name: 1 to DRA_UID_MAX letters, digits and '-',
 * the first no '-'? */
bool dra_uid_is_good(const char *uid);
/* A name of Kubernetes' in a path: letters, digits, '-' and '.', not empty, and
 * no '.' or '-' at its ends? */
bool dra_name_is_good(const char *name);

/* "xpu.biga.dev/card=UID-card-0000-17-00" */
void dra_cdi_id(const char *uid, const char *device,
                char ret_id[DRA_CDI_ID_MAX]);

#endif
