/* fakeapi - a server on loopback that answers each request with what a script
 * says next, for tests of those who list and watch. */
#ifndef BIGA_TESTS_LIB_HTTP_FAKEAPI_H
#define BIGA_TESTS_LIB_HTTP_FAKEAPI_H

#include <stddef.h>

#include "lib/kube/config.h"

enum { FAKEAPI_SCRIPT_MAX = 64 };

enum fakeapi_end {
    FAKEAPI_WHOLE,   /* the answer is complete, the connection stays */
    FAKEAPI_CUT,     /* the connection ends in the middle of the body */
    FAKEAPI_HOLD,    /* no more comes, and the connection stays open */
    FAKEAPI_TRICKLE, /* whole, but a byte at a time */
    FAKEAPI_MUTE,    /* nothing comes at all, and the connection stays open */
    FAKEAPI_REFUSE,  /* the connection ends before any answer */
};

struct fakeapi_answer {
    const char *path;   /* only for targets that begin so; NULL: any */
    const char *expect; /* what the request's head must contain; NULL */
    int status;         /* 0: 200 */
    const char *head;   /* more header lines with \r\n; NULL */
    const char *body;
    enum fakeapi_end end;
};

struct fakeapi;
/* `script` is borrowed; each answer is given once.  A request for which none
 * is left is held. */
struct fakeapi *fakeapi_start(const struct fakeapi_answer *script, size_t n);
void fakeapi_stop(struct fakeapi *f);
/* With its address; the caller may set the token's file. */
struct kube_config *fakeapi_config(struct fakeapi *f);
/* How many requests have come. */
size_t fakeapi_n_requests(struct fakeapi *f);
/* The targets of all requests, one a line, without timeoutSeconds' value; and
 * what was not as expected, as lines that begin with "not expected: ".  The
 * caller frees. */
char *fakeapi_requests(struct fakeapi *f);

#endif
