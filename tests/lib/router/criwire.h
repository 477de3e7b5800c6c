/* criwire - messages of CRI for tests: as a kubelet and a runtime write them,
 * with fields that are newer than Biga at every depth. */
#ifndef BIGA_TESTS_LIB_ROUTER_CRIWIRE_H
#define BIGA_TESTS_LIB_ROUTER_CRIWIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/proto.h"
#include "lib/base/str.h"
#include "router/wire/fields.h"

#define CRIWIRE_ID \
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define CRIWIRE_OTHER \
    "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"

/* Fields of this number and those above it are newer than Biga. */
enum { CRIWIRE_NEWER = 900 };
/* A text and a number of that number; what they say is `mark`. */
void criwire_add_newer(struct str *out, const char *mark);
/* How many of those bytes are in a message, at any depth. */
size_t criwire_newer(struct proto_bytes message, const char *mark);

/* A kubelet's, of the pod "ns/p" with uid "u-1". */
void criwire_config(struct str *out, uint32_t number); /* PodSandboxConfig */
void criwire_run(struct str *out, const char *handler);
/* With mounts of /etc/hosts, a configMap and the termination log. */
void criwire_create(struct str *out);
/* The same with `add` called for its ContainerConfig, its security context and
 * its first mount; any may be NULL. */
struct criwire_extra {
    void (*config)(struct str *out);
    void (*security)(struct str *out);
    void (*mount)(struct str *out);
};
void criwire_create_with(struct str *out, const struct criwire_extra *extra);

/* What is in there, by the numbers of the messages on the way, which end with
 * 0; its data is NULL when it is absent. */
struct proto_bytes criwire_in(const struct str *m, const uint32_t *path);
#define CRIWIRE_IN(m, ...) criwire_in((m), (const uint32_t[]){__VA_ARGS__, 0})
/* The number there; `otherwise` when it is absent. */
uint64_t criwire_number(const struct str *m, uint64_t otherwise,
                        const uint32_t *path);
#define CRIWIRE_NUMBER(m, otherwise, ...) \
    criwire_number((m), (otherwise), (const uint32_t[]){__VA_ARGS__, 0})
/* How many fields of that number there are. */
size_t criwire_count(struct proto_bytes message, uint32_t number);
/* The value of a key of a map, which the test frees; NULL: absent. */
char *criwire_pair(struct proto_bytes message, uint32_t number,
                   const char *key);

static inline struct proto_bytes criwire_of(const struct str *s)
{
    return (struct proto_bytes){s->data, s->size};
}

#endif
