/* cri_endpoint - the container runtime that calls go to, and how they end. */
#ifndef BIGA_ADVERTISER_CRI_CRI_ENDPOINT_H
#define BIGA_ADVERTISER_CRI_CRI_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/grpc/grpc.h"

enum {
    CRI_ID_MAX = 128,
    CRI_TEXT_MAX = 512,     /* names, reasons, messages: cut off there */
    CRI_LABELS_MAX = 64,    /* of one object; more are left out */
    CRI_OBJECTS_MAX = 4096, /* of one list: more is -EPROTO */
    CRI_EXEC_OUTPUT_MAX = 1 << 20,
    CRI_UID_MAX = 64,
    CRI_EVENT_MAX = 1 << 20, /* bytes of one that is watched for */
};

struct cri_pair {
    const char *key, *value;
};
struct cri_pairs {
    const struct cri_pair *list;
    size_t n;
};

struct cri; /* use from one thread at a time */
/* What `config` points to must outlive it. */
int cri_create(const struct grpc_config *config, struct cri **ret_cri,
               struct error *err);
void cri_destroy(struct cri *c); /* NULL allowed */
DEFINE_CLEANUP(cri, struct cri *, cri_destroy)
void cri_reconnect(struct cri *c);

/* As grpc_local_address(). */
void cri_local_address(const struct cri *c, char ret_text[GRPC_ADDRESS_MAX]);

/* How the last call ended. */
const struct grpc_end *cri_end(const struct cri *c);

/* All calls: `ms` is the deadline; 0 or -errno as grpc_call() says it, with
 * the codes of the server that matter made plain: NOT_FOUND -ENOENT,
 * ALREADY_EXISTS (or "is reserved for") -EEXIST, UNIMPLEMENTED -ENOSYS,
 * PERMISSION_DENIED -EACCES, RESOURCE_EXHAUSTED (or "no space left")
 * -ENOSPC, UNAVAILABLE -EAGAIN, DEADLINE_EXCEEDED -ETIMEDOUT. */

/* Any call: the request as it is to be sent, the reply as it came, borrowed
 * until the next call.  For who translates messages himself; nothing is
 * checked. */
struct cri_bytes {
    const char *data;
    size_t size;
};
int cri_call(struct cri *c, const char *method, struct cri_bytes request,
             unsigned ms, struct cri_bytes *ret_reply, struct error *err);

struct cri_version {
    char runtime[CRI_TEXT_MAX], version[CRI_TEXT_MAX], api[CRI_TEXT_MAX];
};
int cri_version(struct cri *c, unsigned ms, struct cri_version *ret_version,
                struct error *err);

struct cri_status {
    bool runtime_ready, network_ready;
    char reason[CRI_TEXT_MAX]; /* why not, "" when both are */
};
int cri_status(struct cri *c, unsigned ms, struct cri_status *ret_status,
               struct error *err);

#endif
