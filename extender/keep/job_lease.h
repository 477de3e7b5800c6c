/* job_lease - when the places that are held for jobs expire, by the monotonic
 * clock.  The writer thread's alone, but for leases_end().  The places are in
 * the snapshot (allocations with `held`); here are only the times.  A lease
 * stays in the table until leases_drop(), so that one whose end could not be
 * stored is tried again. */
#ifndef BIGA_EXTENDER_KEEP_JOB_LEASE_H
#define BIGA_EXTENDER_KEEP_JOB_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/pod/demand.h"

struct leases;
struct leases *leases_create(void);
void leases_destroy(struct leases *l); /* NULL allowed */

/* Begin or prolong the lease of all that is planned together with `pod`
 * (job_lease_key()). */
void leases_renew(struct leases *l, const struct demand *pod, int64_t until_ms);
/* Prolong it; false when there is none. */
bool leases_prolong(struct leases *l, const struct demand *pod,
                    int64_t until_ms);
/* It ends now, unless the transaction that says so fails. */
void leases_hasten(struct leases *l, const struct demand *pod, int64_t now_ms);
/* That was committed, or has failed. */
void leases_mark(struct leases *l);
void leases_undo(struct leases *l);
/* Drop its lease, if it has one. */
void leases_drop(struct leases *l, const struct demand *pod);
/* Has any lease ended by now?  Cheap. */
bool leases_due(const struct leases *l, int64_t now_ms);
/* A pod of every lease that has ended, one by one: begin with *pos SIZE_MAX;
 * NULL at the end.  Borrowed until the lease is dropped, which may be
 * done on the way. */
const struct demand *leases_next_ended(const struct leases *l, int64_t now_ms,
                                       size_t *pos);

/* When the last lease of that job (job_key(); "": of any job) expires, if it is
 * not renewed; false: there is none.  Any thread. */
bool leases_end(struct leases *l, const char *job, int64_t *ret_until_ms);

#endif
