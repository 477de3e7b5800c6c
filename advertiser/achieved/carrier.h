/* carrier - brings the report of what pods have to whoever joins it with what
 * was promised: by PUT to the extender's own listener, or as a ConfigMap in the
 * API server (schema/achieved.md).
 *
 * A machine without I/O or clock, like those of publish.h: it names the next
 * request and when it is due. */
#ifndef BIGA_ADVERTISER_ACHIEVED_CARRIER_H
#define BIGA_ADVERTISER_ACHIEVED_CARRIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "advertiser/publish/publish.h"
#include "advertiser/publish/retry.h"

#define CARRIER_LABEL "biga.dev/report"
#define CARRIER_LABEL_VALUE "achieved"
#define CARRIER_KEY "report"

enum { CARRIER_BODY_MAX = 2 << 20 }; /* bytes of a request */

struct carrier_config {
    const char *node;      /* borrowed, as all texts */
    const char *namespace; /* of the ConfigMap; NULL: to the extender */
    /* How often it is sent although nothing has changed, so that what was lost
     * or changed there is put right. */
    int64_t again_ms;
    int64_t backoff_min_ms, backoff_max_ms;
};

struct carrier; /* use from one thread */
struct carrier *carrier_create(const struct carrier_config *config,
                               uint64_t seed);
void carrier_destroy(struct carrier *c); /* NULL allowed */

/* The report as it is now; sent at once when it is another. */
void carrier_tell(struct carrier *c, const char *report, size_t size,
                  int64_t now_ms);
/* Nothing is known any more; the one request that says so, unless nothing was
 * sent, is tried once. */
void carrier_withdraw(struct carrier *c, int64_t now_ms);

/* When next() has one; PUBLISH_NEVER: nothing to send. */
int64_t carrier_due(const struct carrier *c);
/* The request that is due; each has to be answered before the next. */
bool carrier_next(struct carrier *c, int64_t now_ms,
                  struct publish_request *ret_request);
void carrier_answer(struct carrier *c, int64_t now_ms,
                    const struct publish_answer *answer);

#endif
