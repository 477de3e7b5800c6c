/* keeprig - records, lists and a remote's runtime in memory, for tests of the
 * map: it reserves names as containerd does. */
#ifndef BIGA_TESTS_LIB_ROUTER_KEEPRIG_H
#define BIGA_TESTS_LIB_ROUTER_KEEPRIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "router/keep/keep.h"
#include "router/keep/making.h"

/* Of the pod "ns/UID" on "card-0"; the hash is 7. */
struct kept keeprig_sandbox(const char *uid, uint32_t attempt);
struct kept keeprig_container(const char *uid, const char *sandbox_id,
                              const char *name, uint32_t attempt);
/* 64 digits of that number. */
void keeprig_id(unsigned n, char ret_id[KEPT_ID_MAX + 1]);

enum { KEEPRIG_OBJECTS = 64 };
struct keeprig_object {
    bool there, sandbox, ran;
    char id[KEPT_ID_MAX + 1], sandbox_id[KEPT_ID_MAX + 1];
    char uid[64], name[64];
    uint32_t attempt, state;
    char *kept;
};
/* A runtime.  What it was told to do wrong it does once. */
struct keeprig {
    const char *name;
    struct keeprig_object objects[KEEPRIG_OBJECTS];
    unsigned next_id;
    unsigned n_sent, n_looked, n_removed;
    bool lose_request; /* the next call is not carried out … */
    bool lose_reply;   /* … or is, and has no answer */
    bool refuse;       /* says no, and does nothing */
    bool away;         /* nothing is answered, until it is false */
    /* the call that is under way: */
    struct keep *keep;
    struct kept what;
};
void keeprig_fini(struct keeprig *r);
/* Its calls, for a record of that map. */
struct making_calls keeprig_calls(struct keeprig *r, struct keep *k,
                                  const struct kept *what);
/* What it has, of all pods; the caller frees it. */
void keeprig_list(struct keeprig *r, struct seen *ret_seen);
struct keeprig_object *keeprig_find(struct keeprig *r, const char *id);
size_t keeprig_count(const struct keeprig *r, const char *uid);
/* With the containers of a sandbox. */
void keeprig_remove(struct keeprig *r, const char *id);
/* Begin and finish a listing. */
struct keep_found keeprig_see(struct keeprig *r, struct keep *k);

#endif
