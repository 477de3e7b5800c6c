/* waiting - a request that waits for an operation of the writer. */
#ifndef BIGA_EXTENDER_SERVE_WAITING_H
#define BIGA_EXTENDER_SERVE_WAITING_H

#include "extender/serve/app.h"
#include "lib/http/httpd.h"

struct waiting;
/* What becomes of it.  Its client may leave while it waits: what has to follow
 * from an operation whoever is left to be told does not belong into the
 * answer. */
struct waiting_kind {
    /* On the writer's thread, after each operation; it may read the request.
     * True: it has called waiting_again().  NULL: nothing follows. */
    bool (*follow)(struct waiting *w);
    /* Writes the reply, on the listener's thread; hardly for a client that has
     * gone. */
    void (*answer)(struct httpd_request *rq, struct waiting *w);
    /* NULL: free() is enough.  The operation's `out` is freed before. */
    void (*destroy)(struct waiting *w);
};

/* The operation says what it takes; the first member of what its route keeps
 * for it. */
struct waiting {
    struct writer_op op;
    struct app *app;
    struct httpd_request *rq;
    const struct waiting_kind *kind;
};
/* Post the operation.  `w` is ours until its kind destroys it, once, whatever
 * becomes of the client. */
void waiting_post(struct waiting *w, const struct waiting_kind *kind,
                  struct httpd_request *rq, struct app *app);
/* Post the operation that `op` is now, before the request goes on. */
void waiting_again(struct waiting *w);
/* The same for one that somebody else does in place of the writer: who has
 * begun with it calls waiting_end(), by any thread. */
void waiting_begin(struct waiting *w, const struct waiting_kind *kind,
                   struct httpd_request *rq, struct app *app);
void waiting_end(struct waiting *w);
/* The HTTP status of an operation that has failed. */
unsigned waiting_failure(const struct waiting *w);

#endif
