/* What the files that record share. */
#ifndef BIGA_EXTENDER_HISTORY_HISTORY_RECORD_PRIVATE_H
#define BIGA_EXTENDER_HISTORY_HISTORY_RECORD_PRIVATE_H

#include "extender/history/history_record.h"
#include "lib/base/strmap.h"

/* One run: the first error ends it. */
struct record {
    struct history_book *book;
    const struct snapshot *before, *after; /* before NULL: of a start */
    int64_t ms;
    int result;
    struct error *err;
    struct strmap jobs; /* struct allocation of each that was touched, by key */
    char **keys;        /* of them */
    size_t n_keys, keys_cap;
    struct job_change *changes; /* of each key; see record_jobs_held() */
};

/* "NS/POD" */
void record_pod_key(const struct demand *d,
                    char ret_key[HISTORY_OBJECT_MAX + 1]);
/* Tell an event of now; its time need not be set. */
void record_event(struct record *r, const struct history_event *e);

/* --- history_record_node.c --- */
void record_node(struct record *r, const struct node *node);
void record_node_gone(struct record *r, const char *name);

/* --- history_record_jobs.c --- */
/* "NS/JOB" of a pod that has one; "" of others. */
void record_job_key(const struct demand *d,
                    char ret_key[HISTORY_OBJECT_MAX + 1]);
void record_job_touched(struct record *r, const struct allocation *a);
/* What has become of those that were touched: before their pods are told to be
 * bound, that they were planned; then all else. */
void record_jobs_held(struct record *r);
void record_jobs(struct record *r);
void record_jobs_fini(struct record *r);
/* What the book says of jobs at a start; before anything of it is changed. */
struct jobs_then;
struct jobs_then *record_jobs_then(struct record *r);
void record_jobs_then_free(struct jobs_then *then);
/* What has become of them, and of those of the snapshot: the same two steps.
 * `bound`: pairs that had a place. */
typedef void record_job_since_f(struct record *r, const char *job,
                                int32_t bound);
record_job_since_f record_job_held_since, record_job_since;
void record_jobs_since(struct record *r, const struct jobs_then *then,
                       record_job_since_f *record);

#endif
