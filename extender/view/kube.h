/* kube - the small part of the Kubernetes API that is not the objects
 * themselves: Status, discovery, and the tables that kubectl asks for.
 * Pure. */
#ifndef BIGA_EXTENDER_VIEW_KUBE_H
#define BIGA_EXTENDER_VIEW_KUBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/str.h"

/* A metav1.Status of failure, with the reason that clients know for
 * `status`.  Fits httpd_config.write_error. */
void kube_write_error(struct str *out, unsigned status, const char *text);
/* A Status of success about the slice `name`. */
void kube_write_success(struct str *out, const char *name);

/* The discovery document at `path`, a constant text; NULL: none there. */
const char *kube_discovery(const char *path);

/* Does an Accept header ask for a Table? (NULL: no) */
bool kube_wants_table(const char *accept);

/* A page of slices. */
struct kube_list {
    const char *items; /* a JSON array of slices */
    size_t size;
    uint64_t resource_version;
    const char *next; /* the continue token, NULL on the last page */
};
void kube_write_list(struct str *out, const struct kube_list *list);
/* As meta.k8s.io/v1 Table; its rows hold the whole objects or only their
 * metadata. */
void kube_write_table(struct str *out, const struct kube_list *list,
                      bool whole);

/* metadata.name of an object; false when there is none, or it is longer than
 * `cap` - 1 bytes. */
bool kube_object_name(const char *json, size_t size, char *ret_name,
                      size_t cap);

#endif
