/* guard - what stands before the listeners: their certificates, and who may
 * call them (access.h). */
#ifndef BIGA_EXTENDER_ADMIT_GUARD_H
#define BIGA_EXTENDER_ADMIT_GUARD_H

#include "extender/admit/access.h"
#include "extender/server.h"
#include "lib/base/error.h"
#include "lib/http/httpd.h"
#include "lib/kube/config.h"

struct guard {
    struct tls *tls; /* NULL: plain HTTP */
    bool plain_anywhere;
    struct kube_config *kube; /* NULL: the API server reviews no tokens */
    struct access *access;
};

/* Reads the files; the error names the setting or the file. */
int guard_start(struct guard *g, const struct server_config *config,
                struct metrics *metrics, struct error *err);
void guard_fini(struct guard *g); /* after the listeners; may be zeroed */
/* What of a listener's configuration is the guard's. */
void guard_listener(const struct guard *g, enum server_listener which,
                    struct httpd_config *config);
/* Complete the error of httpd_start(): says what to do. */
int guard_explain(const char *listener, struct error *err);

#endif
