/* log_reader - the log of a container as somebody wants it, piece by piece:
 * its last lines, from a time on, of the container's life before. */
#ifndef BIGA_ADVERTISER_ACT_LOG_LOG_READER_H
#define BIGA_ADVERTISER_ACT_LOG_LOG_READER_H

#include "advertiser/act/card/log_pick.h"
#include "advertiser/act/core/actuator.h"

enum { LOG_READER_PIECE = 256 << 10 }; /* bytes of the file, of a piece */

struct log_reader {
    struct act_log_ask ask; /* whose texts outlive it, and where to go on:
                             * attempt and offset */
    struct log_want want;
    struct log_pick pick;
    bool began;       /* the last lines were looked for, or are not wanted */
    bool news;        /* the last piece brought us further */
    unsigned n_short; /* pieces in a row that were far from full: the file had
                       * no more then */
    bool ended; /* nothing more is to come: limit_bytes, or of `previous` */
};
/* `ask` has namespace, name, uid, container, previous, and max where a piece is not
 * LOG_READER_PIECE; attempt and offset where it goes on from an earlier one. */
void log_reader_init(struct log_reader *r, const struct act_log_ask *ask,
                     const struct log_want *want);
/* Appends to `out`; as actuator_logs(). */
int log_reader_next(struct log_reader *r, struct actuator *a, struct str *out,
                    struct error *err);

#endif
