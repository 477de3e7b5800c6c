/* dra_claims - claims are prepared and unprepared: looked up in the API server,
 * checked against this node's cards, written down, and given to container
 * runtimes by CDI.  One thread; blocks for the API server and the disk. */
#ifndef BIGA_ADVERTISER_DRA_DRA_CLAIMS_H
#define BIGA_ADVERTISER_DRA_DRA_CLAIMS_H

#include <stdint.h>

#include "advertiser/dra/cdi.h"
#include "advertiser/dra/dra_files.h"
#include "advertiser/dra/dra_wire.h"
#include "lib/base/error.h"
#include "lib/base/mem.h"

/* The ResourceClaim of that name, as JSON: 0; -ENOENT: there is none; else as
 * kube_call() says. */
typedef int dra_look_up_f(void *ctx, const char *namespace, const char *name,
                          struct str *ret_json, struct error *err);

struct dra_claims_config {
    const char *node;
    const char *dir, *cdi_dir; /* as dra_files_open() */
    int64_t grace_ms; /* what was prepared stays that long when its claim is
                       * gone, and nobody asks to unprepare it */
    dra_look_up_f *look_up;
    void *ctx;
};

struct dra_claims;
/* `config` is copied, its texts and ctx are borrowed. */
int dra_claims_open(const struct dra_claims_config *config,
                    struct dra_claims **ret_claims, struct error *err);
void dra_claims_close(struct dra_claims *c); /* NULL allowed */
DEFINE_CLEANUP(dra_claims, struct dra_claims *, dra_claims_close)

/* Prepared, and written down: 0 and the record, borrowed until the next call.
 * Prepared already: the same again.  An error names the claim and what to do;
 * one that passes (kube_error_passes()) is of the API server, and others would
 * get it as well. */
int dra_claims_prepare(struct dra_claims *c, const struct dra_ref *ref,
                       const struct cdi_host *host,
                       const struct dra_record **ret_record, struct error *err);
/* Nothing is left of it; one that is not known is a success. */
int dra_claims_unprepare(struct dra_claims *c, const struct dra_ref *ref,
                         struct error *err);

/* CDI files that are missing, or are not as the cards are now, are written; of
 * cards that are not there now they stay as they are. */
void dra_claims_restore(struct dra_claims *c, const struct cdi_host *host);
/* Look after one claim, so that a call never waits for more than one: gone in
 * the API server for grace_ms, it is unprepared.  False: all were looked after
 * in this round, and the next call begins one. */
bool dra_claims_sweep(struct dra_claims *c, int64_t now_ms);

#endif
