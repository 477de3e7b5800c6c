/* pod_keys - the keys of the pod contract (schema/pod.md), each at its place, and
 * whether a pod has a key biga.dev/… that is none of them: misspelt, or where
 * nobody looks for it.  Pure. */
#ifndef BIGA_MODEL_POD_POD_KEYS_H
#define BIGA_MODEL_POD_POD_KEYS_H

#include <stddef.h>

#include "lib/base/error.h"
#include "lib/base/jscan.h"

/* What Biga writes on pods: an annotation, and conditions that a pod's
 * readiness gates may name. */
#define WORD_ALLOCATION "biga.dev/allocation"
#define WORD_XPU_READY "biga.dev/XpuReady"
#define WORD_PAIRED "biga.dev/Paired"
/* The scheduling gate of a pod that Biga places before kube-scheduler sees it. */
#define WORD_PLACE "biga.dev/place"

enum word_place {
    WORD_LABEL,
    WORD_ANNOTATION,
    WORD_RESOURCE,
    WORD_GATE, /* the condition of a readiness gate */
    WORD_SCHEDULING_GATE,
    WORD_PLACES
};

struct word {
    const char *key; /* "biga.dev/align", "cpu" */
    enum word_place place;
};

/* The n-th word, from 0; false when there are no more. */
bool pod_keys_get(size_t n, struct word *ret_word);

/* Look at the labels, annotations, requests, limits and gates of both kinds of
 * the pod under the cursor, whatever its role; only keys biga.dev/… are looked at, those of
 * other prefixes (example.biga.dev/…) are their owners'.
 *
 * 0 when all are words; -EDOM with the first that is none and what was
 * probably meant (`metadata.annotations["biga.dev/aling"]: is no key of Biga;
 * did you mean biga.dev/align?`); or -EINVAL for malformed JSON. */
int pod_keys_check(struct jscan *s, struct error *err);

#endif
