/* drarig - a node with cards and a /sys, an API server that has claims, and the
 * folders of what is prepared, for tests of advertiser/dra.  Aborts where it
 * cannot be made. */
#ifndef BIGA_TESTS_LIB_DRA_DRARIG_H
#define BIGA_TESTS_LIB_DRA_DRARIG_H

#include "advertiser/dra/dra_claims.h"

enum { DRARIG_CLAIMS_MAX = 16 };

/* What the API server has, as text; NULL: no such claim. */
struct drarig_claim {
    char name[64];
    char *json;
};

struct drarig {
    char *root; /* a folder: kubelet/, run/cdi/, sys/ */
    bool own;   /* and it goes with the rig */
    char *dir, *cdi_dir;
    struct topo *topo; /* node n1: cards 0000:17:00 and 0000:18:00 by claims,
                        * 0000:19:00 by allocations, a gpu 0000:1b:00.0 */
    struct cdi_host host;
    struct drarig_claim claims[DRARIG_CLAIMS_MAX];
    int fails; /* of look-ups, -errno; 0: none does */
    unsigned n_looked_up;
    int64_t grace_ms;
    struct dra_claims *open;
};

/* `root` NULL: a new folder. */
void drarig_init(struct drarig *r, const char *root);
/* The folder stays when it was given. */
void drarig_fini(struct drarig *r);
void drarig_open(struct drarig *r);
/* As after a kill. */
void drarig_close(struct drarig *r);

/* What the API server answers. */
int drarig_look_up(void *ctx, const char *namespace, const char *name,
                   struct str *ret_json, struct error *err);
/* There is a claim now, with that UID, for the cards "a,b,…" (requests r0, r1,
 * …), of which "a*2" is a share with 2 cores (of 8); cards "": not allocated; uid
 * NULL: it is gone. */
void drarig_claim(struct drarig *r, const char *name, const char *uid,
                  const char *cards);
/* Any text as it. */
void drarig_claim_json(struct drarig *r, const char *name, const char *json);

struct dra_ref drarig_ref(const char *name, const char *uid);
int drarig_prepare(struct drarig *r, const char *name, const char *uid,
                   struct error *err);
int drarig_unprepare(struct drarig *r, const char *name, const char *uid,
                     struct error *err);

/* What is on disk. */
bool drarig_has_record(const struct drarig *r, const char *uid);
bool drarig_has_cdi(const struct drarig *r, const char *uid);
char *drarig_cdi(const struct drarig *r, const char *uid); /* caller frees */
/* All files of both folders. */
size_t drarig_n_files(const struct drarig *r);
/* A file below the root, with the folders above it. */
void drarig_write(const struct drarig *r, const char *path, const char *text);

#endif
