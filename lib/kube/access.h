/* kube_access - what of a configuration may change while a program runs: the
 * token, and the files of certificates and keys.  They are looked at once a
 * second at most.  Use from one thread at a time. */
#ifndef BIGA_LIB_KUBE_ACCESS_H
#define BIGA_LIB_KUBE_ACCESS_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/http/http.h"
#include "lib/kube/config.h"

struct kube_access;
/* `config` is borrowed and must outlive it.  Every file must be there and
 * readable; the error names it. */
int kube_access_create(const struct kube_config *config,
                       struct kube_access **ret_access, struct error *err);
void kube_access_destroy(struct kube_access *a); /* NULL allowed */
DEFINE_CLEANUP(kube_access, struct kube_access *, kube_access_destroy)

enum kube_access_news {
    KUBE_ACCESS_TOKEN = 1, /* for the next call */
    KUBE_ACCESS_FILES = 2, /* connections that exist stand on what was */
};
/* Look, when the last look is a second ago: what has become another since. A
 * token file that is gone, empty or unsound leaves the token before in force,
 * is logged, and is looked at again when it changes. */
unsigned kube_access_poll(struct kube_access *a, int64_t now_ms);
/* "Bearer …" until the next poll, or NULL. Never to be logged. */
const char *kube_access_authorization(const struct kube_access *a);

/* What http needs; texts are the configuration's. */
void kube_access_http(const struct kube_config *config, unsigned timeout_ms,
                      size_t answer_max, struct http_config *ret_http);

#endif
