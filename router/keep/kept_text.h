/* kept_text - a kept record as text: in the database, and as the annotation
 * biga.dev/kept on what a remote has, from which the map is made again when it
 * is lost.  Pure.
 * A remote may give back any text, and what is in it leads to files that the
 * kubelet reads.  So the annotation is sealed with a secret of this node. */
#ifndef BIGA_ROUTER_KEEP_KEPT_TEXT_H
#define BIGA_ROUTER_KEEP_KEPT_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"
#include "lib/base/str.h"
#include "router/keep/kept.h"

#define KEPT_ANNOTATION "biga.dev/kept"
enum {
    KEPT_SECRET_SIZE = 32,
    KEPT_TEXT_MAX = 512 << 10,  /* bytes of a record in the database */
    KEPT_SEALED_MAX = 60 << 10, /* of the annotation, which is without mounts
                                 * or allocation when these make it longer */
};

struct kept_secret {
    unsigned char bytes[KEPT_SECRET_SIZE];
};
/* JSON, appended to `out`. */
void kept_text_write(const struct kept *k, struct str *out);
/* 0, or -EINVAL with the path of what is wrong.  The caller owns it. */
int kept_text_read(const char *text, size_t size, struct kept **ret_kept,
                   struct error *err);
/* Appended to `out`; neither its state nor its own id is in it. */
void kept_seal(const struct kept *k, const struct kept_secret *secret,
               struct str *out);
/* `*ret_sealed`: by that secret.  When it is not, the caller decides whether
 * anything in it is to be believed.  -EINVAL: it is none. */
int kept_unseal(const char *text, const struct kept_secret *secret,
                struct kept **ret_kept, bool *ret_sealed, struct error *err);

#endif
