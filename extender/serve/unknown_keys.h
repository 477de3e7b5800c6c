/* unknown_keys - the warning in an answer about a pod with a key biga.dev/… that
 * is none of the pod contract's (model/pod/pod_keys.h). */
#ifndef BIGA_EXTENDER_SERVE_UNKNOWN_KEYS_H
#define BIGA_EXTENDER_SERVE_UNKNOWN_KEYS_H

#include "extender/serve/app.h"
#include "lib/base/str.h"

/* The beginning of an answer, `{"pod":{…}`, with a member "warning" when there
 * is something odd about it. */
void unknown_keys_write_pod(const struct app *app, const struct demand *pod,
                            struct str *out);
/* The same as a line of text, or nothing. */
void unknown_keys_write_line(const struct app *app, const struct demand *pod,
                             struct str *out);

#endif
