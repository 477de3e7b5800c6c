/* grpc_counts - how calls to a server have ended, counted for who keeps
 * metrics. */
#ifndef BIGA_LIB_GRPC_GRPC_COUNTS_H
#define BIGA_LIB_GRPC_GRPC_COUNTS_H

#include <stdatomic.h>

enum grpc_outcome {
    GRPC_ANSWERED,
    GRPC_REFUSED,    /* the server answered with another status than OK */
    GRPC_LATE,       /* no answer came in time */
    GRPC_UNREACHED,  /* there was no connection, or it was lost */
    GRPC_DISTRUSTED, /* a certificate was refused, on either side */
    GRPC_BROKEN,     /* the answer is against the protocol, or too big */
    GRPC_GIVEN_UP,   /* by us */
    GRPC_OUTCOMES
};
const char *grpc_outcome_name(enum grpc_outcome outcome); /* "ok" … */
/* Of what grpc_call() returns. */
enum grpc_outcome grpc_outcome_of(int r);

/* Any thread. */
struct grpc_counts {
    atomic_ullong ended[GRPC_OUTCOMES];
};

#endif
