/* health - from the answers of a place to what may be done there, and when to
 * ask it again.  Pure.
 *
 * One answer that is missing makes a place suspect; it is lost when nothing
 * has come for `lost_ms`, or when it has stayed suspect for that long with
 * answers now and then, or became suspect again and again.  Back from suspect
 * it needs two answers in a row, back from lost three: a place that comes and
 * goes stays lost. */
#ifndef BIGA_ADVERTISER_ACT_CARD_HEALTH_H
#define BIGA_ADVERTISER_ACT_CARD_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

enum act_health {
    ACT_READY,   /* answers */
    ACT_SUSPECT, /* one probe failed: nothing new is begun there */
    ACT_LOST,    /* for longer: its capacity is withdrawn */
    ACT_DRAINED, /* by the operator: what runs stays, nothing new comes */
};
const char *act_health_name(enum act_health health); /* "ready" … */

enum {
    HEALTH_PROBE_MS = 1500, /* while it is ready; twice as often else */
    HEALTH_LOST_MS = 4000,
    HEALTH_RETRY_MAX_MS = 5000, /* between probes of one that is lost */
    HEALTH_FLAPS = 3, /* times it became suspect in HEALTH_FLAP_MS: lost */
    HEALTH_FLAP_MS = 30000,
    HEALTH_GOOD_SUSPECT = 2, /* answers in a row */
    HEALTH_GOOD_LOST = 3,
};

struct health {
    int64_t probe_ms, lost_ms;
    enum act_health now; /* never ACT_DRAINED: that is the operator's */
    int64_t since_ms;    /* in that health */
    int64_t good_ms;     /* when the last answer came */
    int64_t due_ms;      /* the next probe */
    unsigned n_good;     /* in a row */
    unsigned n_bad;      /* since it was last ready */
    int64_t flaps_ms[HEALTH_FLAPS]; /* when it became suspect, newest first */
    unsigned n_retries;             /* in a row, while lost */
};

/* Begins as suspect, with the first probe due. 0: the defaults above. */
void health_init(struct health *h, int64_t probe_ms, int64_t lost_ms,
                 int64_t now_ms);
/* How long a probe may take. */
int64_t health_deadline_ms(const struct health *h);
/* An answer came; or none to what was sent at `sent_ms`.  True when the
 * health has changed. */
bool health_good(struct health *h, int64_t now_ms);
bool health_bad(struct health *h, int64_t sent_ms, int64_t now_ms);
/* What others see. */
enum act_health health_shown(const struct health *h, bool drained);

#endif
