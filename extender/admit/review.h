/* review - asks the API server whose a bearer token is (TokenReview) and what
 * that user may do here (SubjectAccessReview of a non-resource path, or of a
 * pod's subresource).
 *
 * One thread of its own asks, one call after the other; verdicts are
 * remembered for a while under the SHA-256 of what was asked, so that the
 * token itself is kept nowhere. */
#ifndef BIGA_EXTENDER_ADMIT_REVIEW_H
#define BIGA_EXTENDER_ADMIT_REVIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/kube/config.h"

enum {
    REVIEW_WAITING_MAX = 256,   /* calls that wait for the thread */
    REVIEW_TOKEN_MAX = 16384,   /* bytes of a token */
    REVIEW_USER_MAX = 253,      /* bytes of a name; the rest is cut */
    REVIEW_ADMITTED_MS = 10000, /* how long a verdict is remembered */
    REVIEW_REFUSED_MS = 5000,
    REVIEW_TIMEOUT_MS = 3000,  /* of one call to the API server */
    REVIEW_PATIENCE_MS = 5000, /* a call that has waited longer fails */
};

enum review_verdict {
    REVIEW_UNDECIDED,
    REVIEW_ADMITTED,
    REVIEW_UNKNOWN,   /* nobody's token: 401 */
    REVIEW_FORBIDDEN, /* the user may not: 403 */
    REVIEW_FAILED,    /* the API server could not be asked: 503 */
    REVIEW_VERDICTS
};
const char *review_verdict_name(enum review_verdict verdict); /* "admitted" */

/* May the token's user `verb` that path; or, where `resource` is given, that
 * subresource ("pods/exec") of the object `name` in `namespace`? */
struct review_call {
    const char *token, *verb, *path;         /* borrowed until done */
    const char *resource, *namespace, *name; /* the same; or NULL */
    /* the outcome */
    enum review_verdict verdict;
    char user[REVIEW_USER_MAX + 1]; /* when it is admitted: whose token it is */
    struct error error;             /* why, for a person; no token in it */

    void (*done)(struct review_call *call); /* on the thread */
    void *ctx;
    struct review_call *next; /* the thread's */
    int64_t since_ms;         /* the same */
};

struct review;
/* `config` outlives it. */
int review_start(const struct kube_config *config, struct review **ret_review,
                 struct error *err);
/* Calls fail from now on; those that wait do at once. */
void review_quiesce(struct review *r);
void review_stop(struct review *r); /* NULL allowed; every call is done */
DEFINE_CLEANUP(review, struct review *, review_stop)

/* What is remembered; REVIEW_UNDECIDED: nothing. Any thread. */
enum review_verdict review_look(struct review *r, struct review_call *call,
                                int64_t now_ms);
/* A place among those that wait; false when there is none.  It is taken by
 * the review_post() that has to follow.  Any thread. */
bool review_reserve(struct review *r);
void review_post(struct review *r, struct review_call *call);

#endif
