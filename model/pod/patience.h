/* patience - how long a pod stays on a card that is lost before it is evicted
 * (annotation biga.dev/card-lost): "300" or "300s", "5m", "1h30m", or "never".
 * Pure. */
#ifndef BIGA_MODEL_POD_PATIENCE_H
#define BIGA_MODEL_POD_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

#define PATIENCE_KEY "biga.dev/card-lost"
#define PATIENCE_NEVER INT64_MAX

enum {
    PATIENCE_DEFAULT_S = 300,
    PATIENCE_MAX_S = 31622400, /* 366 days */
};

/* In seconds; false when it is none, or more than PATIENCE_MAX_S. */
bool patience_parse(const char *text, int64_t *ret_s);

#endif
