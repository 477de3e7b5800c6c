/* kube_lease - coordination.k8s.io/v1 Lease objects, read and written.  Who
 * holds one: election.h.  Pure. */
#ifndef BIGA_LIB_KUBE_LEASE_H
#define BIGA_LIB_KUBE_LEASE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/str.h"

#define KUBE_LEASE_GENERATION "biga.dev/generation" /* an annotation */

#define KUBE_LEASE_GROUP "/apis/coordination.k8s.io/v1"

enum { KUBE_LEASE_HOLDER_MAX = 253, KUBE_LEASE_NAME_MAX = 253 };

struct kube_lease {
    char namespace[64];
    char name[KUBE_LEASE_NAME_MAX + 1];
    char resource_version[64];
    char uid[64];
    char holder[KUBE_LEASE_HOLDER_MAX + 1]; /* "": nobody */
    int32_t duration_s;
    int32_t transitions;
    /* MicroTime texts as they stand, "" absent: "2026-01-02T03:04:05.000006Z"
     */
    char acquired[40], renewed[40];
    int64_t generation; /* the annotation: the highest generation of a pool
                         * that the holder may write; 0: absent */
};

/* Lenient about members it does not know; strict about the types of these. */
int kube_lease_read(const char *json, size_t size, struct kube_lease *ret_lease,
                    struct error *err);
/* As a whole object for POST or PUT; `owner_node` and its uid make it owned by
 * that Node, NULL: by nobody.  resourceVersion is written unless "". */
void kube_lease_write(const struct kube_lease *lease, const char *owner_node,
                      const char *owner_uid, struct str *out);
/* Wall time in microseconds since 1970 as a MicroTime. */
void kube_lease_time(int64_t unix_us, char ret_text[40]);

#endif
