/* serve_guess - what is told of a remote that its list does not have (yet): all
 * that is written down, while it was not heard since this process began; and
 * what was made after its last list. */
#ifndef BIGA_ROUTER_SERVE_SERVE_GUESS_H
#define BIGA_ROUTER_SERVE_SERVE_GUESS_H

#include "router/serve/serve_private.h"

/* Was it not listed yet, since this process began? */
bool serve_is_silent(struct far *far);
/* A raw reply of it, as far as it is written down. */
void serve_guess_list(struct far *far, const struct method *m, struct str *out);
void serve_guess_status(const struct kept *k, struct str *out);

/* It was made there. */
void serve_made(struct far *far, const char *id);
/* A raw reply with those that were made after the list of `view_ms` and that
 * this one, `list`, does not have. */
void serve_guess_made(struct far *far, const struct method *m, int64_t view_ms,
                      struct proto_bytes list, struct str *out);

void serve_heard(struct far *far); /* it is ready, or lost */
/* Waits for SERVE_HEAR_MS at most. */
void serve_hear_all(struct serve *s);

#endif
