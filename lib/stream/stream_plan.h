/* stream_plan - where a stream goes, and who the server must be there: all that
 * may block before it is dialled. */
#ifndef BIGA_LIB_STREAM_STREAM_PLAN_H
#define BIGA_LIB_STREAM_STREAM_PLAN_H

#include <stdbool.h>
#include <sys/socket.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/stream/stream_creds.h"
#include "lib/stream/stream_url.h"

enum {
    STREAM_NAME_MAX = 253,    /* of a remote, a container */
    STREAM_ADDRESSES_MAX = 4, /* of a name; more are not tried */
};

/* A stream that the remote has agreed to. */
struct stream_plan_ask {
    const char *remote;    /* its name: for logs, and to cut by */
    const char *container; /* id of the container, or of the sandbox for a
                            * port-forward: to cut by */
    const char *url;       /* as the remote replied: hostile */
    const char *host;      /* of the remote's endpoint: what is dialled and
                            * what its certificate is for */
    const char *ca, *cert, *key; /* of the endpoint; ca NULL: it has none */
    /* Take http:// as well: the endpoint itself is plain.  Otherwise what is
     * typed and shown would cross the link for all to read, and an http://
     * URL is -EKEYREJECTED. */
    bool plaintext;
    bool system_ca; /* no ca: those that the system trusts */
};

/* The same, looked up; immutable. */
struct stream_plan {
    char *remote, *container, *host;
    struct stream_url url;
    struct sockaddr_storage to[STREAM_ADDRESSES_MAX]; /* the first first */
    size_t n_to;                                      /* one at least */
    struct stream_creds *creds;                       /* NULL: plain */
};
/* Copies everything.  Reads the files, and asks the resolver where `host` is a
 * name: it may block for these, not for the remote.  Errors are those of
 * stream_url_parse(), stream_url_is_at() and stream_creds_create(); -EINVAL: a
 * name that is missing or too long; -EHOSTUNREACH: a host without an
 * address. */
int stream_plan_create(const struct stream_plan_ask *ask,
                       struct stream_plan **ret_plan, struct error *err);
void stream_plan_destroy(void *plan); /* NULL allowed */
DEFINE_CLEANUP(stream_plan, struct stream_plan *, stream_plan_destroy)

#endif
