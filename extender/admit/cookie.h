/* cookie - the token of whoever looks with a browser, which cannot send it
 * otherwise: only the browser and this server see it, and each request is
 * judged by it as by one in an Authorization header.
 *
 * A cookie goes along without the user's doing, so it only lets read, and not
 * for a page of elsewhere. */
#ifndef BIGA_EXTENDER_ADMIT_COOKIE_H
#define BIGA_EXTENDER_ADMIT_COOKIE_H

#include <stdbool.h>

#include "lib/base/str.h"
#include "lib/http/httpd.h"

enum { COOKIE_TOKEN_MAX = 3800 }; /* bytes: browsers take 4096 in all */

/* Append the token; false: the request has none.  `secure`: the listener has
 * TLS, and then another name, which no page without TLS can set. */
bool cookie_token(const struct httpd_request *rq, bool secure, struct str *out);
/* Keep this token, or "": none any more.  False: no cookie can hold it. */
bool cookie_set(struct httpd_request *rq, bool secure, const char *token);

/* Why a request may not be judged by a cookie; NULL: it may.  `of_pod`: it is
 * for what a pod writes and reads, which is told to no page whose place is not
 * known. */
const char *cookie_fault(const struct httpd_request *rq, bool of_pod);

#endif
