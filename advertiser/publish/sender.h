/* sender - one connection to the server, whichever of the two kinds it is. */
#ifndef BIGA_ADVERTISER_PUBLISH_SENDER_H
#define BIGA_ADVERTISER_PUBLISH_SENDER_H

#include "advertiser/publish/publish.h"
#include "advertiser/publish/publisher.h"
#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/http/http.h"
#include "lib/kube/config.h"

struct sender_config {
    struct http_config http;        /* the extender's own listener; or only
                                     * its timeout, with: */
    const struct kube_config *kube; /* NULL: not to an API server */
};

struct sender; /* use from one thread at a time */
/* `config` and what it names must outlive it. */
int sender_create(const struct sender_config *config,
                  struct sender **ret_sender, struct error *err);
void sender_destroy(struct sender *s); /* NULL allowed */
DEFINE_CLEANUP(sender, struct sender *, sender_destroy)

/* A publisher_send_f whose context is a sender. */
int sender_send(void *sender, const struct publish_request *request,
                struct http_answer *ret_answer, struct error *err);

#endif
