/* list - what a list of objects says of itself.  Pure. */
#ifndef BIGA_LIB_KUBE_LIST_H
#define BIGA_LIB_KUBE_LIST_H

#include "lib/base/error.h"
#include "lib/base/jscan.h"
#include "lib/base/str.h"

enum {
    KUBE_VERSION_MAX = 63,    /* bytes of a resourceVersion */
    KUBE_CONTINUE_MAX = 8192, /* of a list's continue */
};

/* A list without its items.  `ret_next`, with room for KUBE_CONTINUE_MAX, is
 * emptied first; empty: it was the last page. */
int kube_list_read(const char *json, size_t size,
                   char ret_version[KUBE_VERSION_MAX + 1], struct str *ret_next,
                   struct error *err);

/* The version in an object's metadata, where `s` is; "" when it is missing.
 * A fault stays in `s`. */
void kube_metadata_read(struct jscan *s, char version[KUBE_VERSION_MAX + 1]);

#endif
