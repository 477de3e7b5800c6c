/* reach - what the token of some namespaces (tokens.h) reaches of the read
 * listener.  Each route has its line in one table; what has none, such a token
 * does not reach. */
#ifndef BIGA_EXTENDER_ADMIT_REACH_H
#define BIGA_EXTENDER_ADMIT_REACH_H

#include "extender/state/scope.h"
#include "lib/http/httpd.h"

enum reach {
    REACH_NONE,    /* it is of the whole cluster */
    REACH_SEEN,    /* shows what is seen of it: visible_snapshot() and
                    * sight_scope(), or nothing of pods */
    REACH_PATH,    /* of the namespace that its path begins with */
    REACH_HISTORY, /* of a kind: of the namespace behind it, or seen */
    REACH_ASKED,   /* of that of the parameter pod or job */
    REACH_UNKNOWN, /* it has no line: as none */
};
enum reach reach_of(enum httpd_method method, const char *route);

/* Why the request is out of reach, for a person; the caller frees it.  NULL: it
 * is not. */
char *reach_refusal(const struct httpd_request *rq, const struct scope *scope);

#endif
