/* quantity - Kubernetes' resource.Quantity, the text of an amount, in every
 * form that the API server accepts and writes ("2", "1.5", "500m", "1e3",
 * "64Gi", "128974848000m").  Pure. */
#ifndef BIGA_MODEL_POD_QUANTITY_H
#define BIGA_MODEL_POD_QUANTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/jscan.h"

/* In thousandths, finer ones count up; what is more than INT64_MAX is that,
 * and a negative one is 0.  False when it is none. */
bool quantity_parse(const char *data, size_t size, int64_t *ret_milli);

/* The same of the next value, a JSON string or number. */
bool quantity_scan(struct jscan *s, int64_t *ret_milli);

/* Thousandths of bytes as KiB, rounded up. */
int64_t quantity_kib(int64_t milli);

#endif
