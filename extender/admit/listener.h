/* listener - what every listener's ctx begins with, for who may call it
 * (access.h) and what is counted. */
#ifndef BIGA_EXTENDER_ADMIT_LISTENER_H
#define BIGA_EXTENDER_ADMIT_LISTENER_H

#include "lib/http/httpd.h"
#include "lib/io/metrics.h"

struct access;

struct listener {
    struct metrics *metrics; /* of app_metrics_create() */
    struct access *access;   /* NULL: everybody may call everything */
    bool secure;             /* it has TLS */
    /* Write a page that asks for a token in place of the reply to a browser,
     * with what was wrong with the one that came, NULL: none came; the status
     * stays.  NULL: there are no pages */
    void (*show_login)(struct httpd_request *rq, const char *why);
};

/* The observe hook; ctx begins with a struct listener. */
void listener_observe(void *ctx, const struct httpd_observation *o);

#endif
