/* What the files of the embedded source share: its operations, see
 * pod_source.h. */
#ifndef BIGA_EXTENDER_RUN_EMBEDDED_PRIVATE_H
#define BIGA_EXTENDER_RUN_EMBEDDED_PRIVATE_H

#include "extender/run/embedded.h"

/* --- embedded_view.c --- */
uint64_t embedded_version(void *ctx);
void embedded_add_to_allocation(void *ctx, const struct allocation *a,
                                struct str *out);
void embedded_add_to_card(void *ctx, const struct node *node, size_t card,
                          struct str *out);
void embedded_add_health(void *ctx, const struct allocation *a,
                         struct str *text);
bool embedded_find(void *ctx, const struct snapshot *s, const char *namespace,
                   const char *name, struct pod_account *ret);
bool embedded_find_job(void *ctx, const struct snapshot *s,
                       const char *namespace, const char *job,
                       struct pod_account *ret);
bool embedded_find_unknown_key(void *ctx, const char *namespace,
                               const char *name, struct str *text);
bool embedded_add_waiting(void *ctx, const struct demand *pod,
                          struct str *text);
void embedded_gauge(void *ctx, const struct snapshot *s);

/* --- embedded_jobs.c --- */
void embedded_each_pod(void *ctx, const struct snapshot *s,
                       const struct pods_asked *asked, job_pod_f *visit,
                       void *arg);
void embedded_each_asking(void *ctx, const struct snapshot *s, job_pod_f *visit,
                          void *arg);
void embedded_each_job(void *ctx, const struct job_name *behind, size_t most,
                       job_name_f *visit, void *arg);
uint64_t embedded_pods_version(void *ctx);
struct ended_jobs *embedded_ended(void *ctx);
/* Of applied_watch_gone(). */
void embedded_gone(void *ctx, const struct applied_pod *p);

/* --- embedded_release.c --- */
bool embedded_may_release(void *ctx, const char *namespace, const char *name,
                          bool *ret_unfed, struct str *why);

#endif
