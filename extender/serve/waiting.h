/* waiting - a request that waits for an operation of the writer. */
#ifndef BIGA_EXTENDER_SERVE_WAITING_H
#define BIGA_EXTENDER_SERVE_WAITING_H

#include "extender/serve/app.h"
#include "lib/http/httpd.h"

/* The operation says what it takes; the first member of what its route keeps
 * for it. */
struct waiting {
    struct writer_op op;
    struct app *app;
    struct httpd_request *rq;
};
/* Post the operation.  When it is done, the request goes on with `finish`,
 * which is given `w` and frees it. */
void waiting_post(struct waiting *w, struct httpd_request *rq, struct app *app,
                  void (*finish)(struct httpd_request *rq, void *arg));
/* The HTTP status of an operation that has failed. */
unsigned waiting_failure(const struct waiting *w);

#endif
