/* claim_version - semantic versions (semver.org 2.0), as Kubernetes reads and
 * orders them: build metadata is checked and counts for nothing.  Pure. */
#ifndef BIGA_MODEL_CLAIM_CLAIM_VERSION_H
#define BIGA_MODEL_CLAIM_CLAIM_VERSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct claim_version {
    uint64_t part[3]; /* major, minor, patch */
    const char *pre;  /* pre-release, borrowed from the text */
    size_t pre_size;  /* 0: none */
};

/* False when it is none. */
bool claim_version_parse(const char *text, size_t size,
                         struct claim_version *ret_version);
/* The same for what CEL's semver(text, true) takes: a "v" before it, leading
 * zeros, minor and patch left out. */
bool claim_version_parse_loose(const char *text, size_t size,
                               struct claim_version *ret_version);
/* -1, 0, 1 */
int claim_version_compare(const struct claim_version *a,
                          const struct claim_version *b);

#endif
