/* dra_wire - the messages between a kubelet and a plugin of it, as in
 * k8s.io/kubelet/pkg/apis/pluginregistration/v1, dra/v1, dra/v1beta1 (the same,
 * without share_id) and dra-health/v1 and v1alpha1 (equal).  Pure.
 *
 * Readers take what they know and pass over the rest; what is malformed is
 * -EPROTO, more than a cap allows -E2BIG.  Writers append. */
#ifndef BIGA_ADVERTISER_DRA_DRA_WIRE_H
#define BIGA_ADVERTISER_DRA_DRA_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "advertiser/dra/dra_record.h"
#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/base/proto.h"
#include "lib/base/str.h"

enum {
    DRA_CLAIMS_MAX = 256,      /* of one call */
    DRA_MESSAGE_MAX = 4 << 20, /* bytes */
    DRA_REQUEST_BYTES_MAX = 1 << 20,
};

/* --- registration --------------------------------------------------------- */

/* PluginInfo; `versions` ends with NULL. */
void dra_write_info(const char *name, const char *endpoint,
                    const char *const *versions, struct str *out);
/* RegistrationStatus; the kubelet's words are cut to the error's length. */
int dra_read_registered(struct proto_bytes message, bool *ret_registered,
                        struct error *ret_why, struct error *err);

/* --- claims --------------------------------------------------------------- */

/* One claim that the kubelet asks about; not checked but for being text, and
 * for its length: what is longer is cut, and `too_long`. */
struct dra_ref {
    char uid[DRA_UID_MAX + 1];
    char namespace[DRA_NAMESPACE_MAX + 1];
    char name[DRA_NAME_MAX + 1];
    bool too_long;
};

/* NodePrepareResourcesRequest and NodeUnprepareResourcesRequest, which are
 * equal.  The caller frees `*ret_refs`; NULL when there is none. */
int dra_read_refs(struct proto_bytes message, struct dra_ref **ret_refs,
                  size_t *ret_n, struct error *err);

/* One entry of the answer to NodePrepareResources: all devices of the record,
 * or `problem` (NULL: none).  `shares`: the kubelet knows share_id. */
void dra_write_prepared(const char *uid, const struct dra_record *record,
                        const char *problem, bool shares, struct str *out);
/* One entry of the answer to NodeUnprepareResources. */
void dra_write_unprepared(const char *uid, const char *problem,
                          struct str *out);

/* --- health --------------------------------------------------------------- */

enum dra_health { DRA_HEALTH_UNKNOWN, DRA_HEALTHY, DRA_UNHEALTHY };

/* One device of a NodeWatchResourcesResponse. */
struct dra_fare {
    const char *pool, *device;
    enum dra_health health;
    int64_t unix_s;      /* when that was so */
    int64_t timeout_s;   /* after that it is unknown */
    const char *message; /* NULL: none */
};
void dra_write_fare(const struct dra_fare *fare, struct str *out);

#endif
