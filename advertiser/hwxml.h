/* hwxml - what an hwloc XML may say before hwloc is shown it.
 *
 * The text is read once here, in place and without building anything.  What
 * is well-formed beyond that is hwloc's to say.  Pure. */
#ifndef BIGA_ADVERTISER_HWXML_H
#define BIGA_ADVERTISER_HWXML_H

#include "model/base/error.h"

enum {
    HWXML_DEPTH_MAX = 128, /* elements within one another */
    HWXML_ELEMENTS_MAX = 1 << 18,
    HWXML_OBJECTS_MAX = 1 << 14,
    HWXML_ATTRIBUTES_MAX = 32, /* of one element */
};

/* Check `text`, which ends with a NUL.  0, or -EINVAL that names the line. */
int hwxml_check(const char *text, struct error *err);

#endif
