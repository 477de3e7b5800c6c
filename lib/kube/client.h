/* kube_client - calls to the Kubernetes API server: one kept connection, a
 * deadline on every call, a cap on every answer, the token read again when
 * its file changes, client certificates too.  Use from one thread at a
 * time. */
#ifndef BIGA_LIB_KUBE_CLIENT_H
#define BIGA_LIB_KUBE_CLIENT_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/http/http.h"
#include "lib/kube/config.h"

enum {
    KUBE_TIMEOUT_MS = 10000,
    KUBE_ANSWER_MAX = 16 << 20,
    /* bytes of one object: etcd takes 1.5 MiB, of which JSON makes six times
     * as much where each byte needs an escape */
    KUBE_OBJECT_MAX = 12 << 20,
};

struct kube_client;
/* `config` is borrowed and must outlive it. */
int kube_client_create(const struct kube_config *config, unsigned timeout_ms,
                       struct kube_client **ret_client, struct error *err);
void kube_client_destroy(struct kube_client *c); /* NULL allowed */
DEFINE_CLEANUP(kube_client, struct kube_client *, kube_client_destroy)

enum kube_body {
    KUBE_JSON,            /* application/json */
    KUBE_MERGE_PATCH,     /* application/merge-patch+json */
    KUBE_APPLY,           /* application/apply-patch+yaml (JSON is YAML) */
    KUBE_JSON_PATCH,      /* application/json-patch+json */
    KUBE_STRATEGIC_PATCH, /* application/strategic-merge-patch+json: lists of
                           * Kubernetes' own kinds are merged by key */
};

struct kube_request {
    const char *method; /* "GET" */
    const char *path;   /* "/api/v1/nodes?limit=500", escaped */
    enum kube_body type;
    const char *body; /* NULL: none */
    size_t body_size;
    unsigned timeout_ms; /* 0: the client's */
};

/* 0 when the API server answered 2xx (the answer is the object); else -errno
 * with the method, the path and the Status' message:
 *   -ENOENT 404, -EEXIST 409 AlreadyExists, -EBUSY 409 otherwise (Conflict),
 *   -EACCES 401 403, -EINVAL 400 422, -ESTALE 410, -EAGAIN 429 500 502
 *   503 504 (the Retry-After header, in ms, is in `*ret_retry_ms` of the client), -EPROTO
 *   any other status; and where there was no answer -ETIMEDOUT (the outcome is
 *   unknown), -ECONNREFUSED (nothing was done), -EIO (unknown).
 * `ret_answer` is reset and reused; its status is 0 without an answer. */
int kube_call(struct kube_client *c, const struct kube_request *request,
              struct http_answer *ret_answer, struct error *err);
/* Does the same call fare better in a while, perhaps, though nobody changes
 * anything?  The API server has too much to do, or was not reached. */
static inline bool kube_error_passes(int r)
{
    return r == -EAGAIN || r == -ETIMEDOUT || r == -ECONNREFUSED || r == -EIO;
}

/* What the last -EAGAIN asked to wait; 0: nothing. */
unsigned kube_client_retry_ms(const struct kube_client *c);
/* Was the last -EBUSY or -EEXIST a Status with this reason ("Conflict")? */
bool kube_client_reason_is(const struct kube_client *c, const char *reason);

/* http_client_resent() of the last call: what the API server refuses may have been
 * carried out all the same. */
bool kube_client_resent(const struct kube_client *c);

/* Append one path segment without its slash, percent-encoded: for names from
 * outside. */
void kube_path_add(struct str *path, const char *segment);
/* Append where an object of a namespace is, "/api/v1/namespaces/NS/pods/NAME";
 * `group` is "/api/v1" or "/apis/GROUP/VERSION"; `name` NULL: the collection. */
void kube_path_object(struct str *path, const char *group,
                      const char *namespace, const char *kind,
                      const char *name);

#endif
