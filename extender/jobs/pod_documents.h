/* pod_documents - the Pods that come of what people would apply: JSON documents
 * one after the other, Lists, Jobs (job_object.h) and PodTemplates as buddies,
 * of a cluster or for an extender without one.  Other kinds are passed over.
 * Pure. */
#ifndef BIGA_EXTENDER_JOBS_POD_DOCUMENTS_H
#define BIGA_EXTENDER_JOBS_POD_DOCUMENTS_H

#include "lib/base/str.h"
#include "model/pod/demand.h"

/* Is there something beside one Pod, List or array of Pods? */
bool pod_documents_need_making(const char *data, size_t size);

/* They are a JSON array.  A buddy whose PodTemplate is not there is left out.
 * -EINVAL with the document and the path; also of more than `max` Pods, or 1000
 * PodTemplates. */
int pod_documents_make(const char *data, size_t size,
                       const struct demand_config *config, size_t max,
                       struct str *out, struct error *err);

#endif
