/* arframe - what ranks and workers of the example say to one another: a head of
 * AR_HEAD bytes, little endian, and what it announces.  Bytes in, values out;
 * no I/O. */
#ifndef BIGA_DEPLOY_EXAMPLES_ALLREDUCE_ARFRAME_H
#define BIGA_DEPLOY_EXAMPLES_ALLREDUCE_ARFRAME_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"

enum {
    AR_HEAD = 24,
    AR_RANKS_MAX = 256,
    AR_HOST_MAX = 253,              /* bytes of an address or a name */
    AR_DATA_MAX = 1 << 28,          /* bytes of one buffer */
    AR_HELLO_MAX = 256 * (253 + 1), /* of the workers' hosts, a line each */
    AR_ERROR_MAX = 256,             /* of a text that says what was wrong */
};
enum ar_kind {
    AR_HELLO = 1, /* a rank to its worker: the hosts of all workers */
    AR_JOIN = 2,  /* to the next one in the ring */
    AR_READY = 3, /* a worker to its rank: the ring is closed */
    AR_DATA = 4,
    AR_ERROR = 5,
};
struct ar_frame {
    enum ar_kind kind;
    uint16_t rank, size; /* of the sender; ranks in all */
    uint32_t step;       /* counts AR_DATA in either direction */
    uint64_t bytes;      /* that follow */
};

void arframe_write(const struct ar_frame *f, unsigned char ret_head[AR_HEAD]);
/* -EPROTO: not ours, a rank that cannot be, or more bytes than its kind may
 * have. */
int arframe_read(const unsigned char head[AR_HEAD], struct ar_frame *ret_frame,
                 struct error *err);
/* Is it the one that was to come?  -EPROTO, with what it is instead. */
int arframe_expect(const struct ar_frame *got, const struct ar_frame *wanted,
                   struct error *err);

#endif
