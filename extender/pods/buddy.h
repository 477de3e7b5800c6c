/* buddy - the xPU pod of a host pod with annotation biga.dev/buddy, from the
 * PodTemplate that it names.  Pure.
 *
 * The template's labels, annotations and spec are kept; what makes it the host
 * pod's pair is put over them: role, job and pair as labels, the host pod's
 * annotations biga.dev/… (and biga.dev/gpus, cpus, memory-mib for what it
 * requests) but those that are a pod's own (biga.dev/card…), its schedulerName
 * unless the template has one, its gate biga.dev/place, and an owner reference,
 * so that Kubernetes removes it with the host pod. */
#ifndef BIGA_EXTENDER_PODS_BUDDY_H
#define BIGA_EXTENDER_PODS_BUDDY_H

#include <stddef.h>

#include "extender/pods/kube_pod.h"
#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/base/str.h"

struct buddy_input {
    const char *host; /* the host pod's JSON, and what kube_pod_read() made */
    size_t host_size;
    const struct kube_pod *pod;
    const char *template; /* the PodTemplate's JSON */
    size_t template_size;
    const char *name; /* of the xPU pod */
    bool in_cluster;  /* there are gates; without Kubernetes there are none */
};

/* The pod for POST.  -EINVAL when the template cannot be used: it names the
 * field (a role other than xpu, a nodeName, no container …). */
int buddy_compose(const struct buddy_input *in, struct str *out,
                  struct error *err);

/* PodTemplates that came with the host pods: those see all, and read one. */
enum {
    BUDDY_TEMPLATES_MAX = 4096,
    BUDDY_TEMPLATE_SIZE_MAX = 1 << 20, /* bytes of its JSON */
};

struct buddy_template {
    char *namespace, *name, *json;
};
struct buddy_templates {
    struct buddy_template *list;
    size_t n, cap;
};
void buddy_templates_fini(struct buddy_templates *t); /* of zeros: nothing */
/* -EINVAL: it is too large, or there are too many. */
int buddy_templates_add(struct buddy_templates *t, const cJSON *json,
                        struct error *err);
/* NULL: there is none of that name. */
const struct buddy_template *
buddy_templates_find(const struct buddy_templates *t, const char *namespace,
                     const char *name);

#endif
