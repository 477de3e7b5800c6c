/* hwxml - what an hwloc XML may say before hwloc is shown it.
 *
 * hwloc believes each number: one CPU with the index 4294967295 costs it a
 * bitmap of 512 MB, again and again.  So the text is read once here, in place
 * and without building anything, and every number that hwloc would act upon
 * has a limit.  What is well-formed beyond that is hwloc's to say.  Pure. */
#ifndef BIGA_ADVERTISER_PROBE_HWXML_H
#define BIGA_ADVERTISER_PROBE_HWXML_H

#include "lib/base/error.h"

enum {
    HWXML_DEPTH_MAX = 128, /* elements within one another */
    HWXML_ELEMENTS_MAX = 1 << 18,
    HWXML_OBJECTS_MAX = 1 << 14,
    HWXML_ATTRIBUTES_MAX = 32, /* of one element */
    HWXML_INDEX_MAX = 65535,   /* of a CPU or NUMA node, also in sets */
    HWXML_MATRIX_MAX = 1024,   /* rows of a matrix of distances */
};

/* Check `text`, which ends with a NUL.  0, or -EINVAL that names the line,
 * the element, the attribute and its value. */
int hwxml_check(const char *text, struct error *err);

#endif
