/* arlink - a TCP connection between two of ranks and workers: every wait has a
 * deadline, and every error says who the other side is. */
#ifndef BIGA_DEPLOY_EXAMPLES_ALLREDUCE_ARLINK_H
#define BIGA_DEPLOY_EXAMPLES_ALLREDUCE_ARLINK_H

#include "deploy/examples/allreduce/arframe.h"

enum { AR_WHO_MAX = 320, AR_ADDRESS = 16 };
struct ar_link {
    int fd; /* -1: none; does not block */
    int timeout_ms;
    char who[AR_WHO_MAX]; /* "the worker of rank 3 (10.0.0.3:7703)" */
};
#define AR_LINK_NONE ((struct ar_link){.fd = -1})

/* On all addresses; the descriptor. */
int arlink_listen(unsigned port, struct error *err);
/* The next who connects; -EAGAIN when nobody does in `wait_ms` (-1: ever).
 * Waits for it have `timeout_ms` then, and a dead machine is noticed by then
 * even while nobody waits. */
int arlink_accept(int listening, int wait_ms, int timeout_ms,
                  struct ar_link *ret_link, struct error *err);
/* Tried anew until the time is over, for the other side may begin later. */
int arlink_dial(const char *host, unsigned port, const char *what,
                int timeout_ms, struct ar_link *ret_link, struct error *err);
/* Of this end, of IPv6 or mapped. */
int arlink_own_address(const struct ar_link *l,
                       unsigned char ret_address[AR_ADDRESS],
                       struct error *err);
void arlink_close(struct ar_link *l); /* of none, too */

/* Send all of `out` to one and receive all of `in` from another, at once: a
 * ring of blocking ones would wait for itself.  Either may be NULL.  -ENODATA:
 * `from` ended before its first byte; -ETIMEDOUT; -ECONNRESET. */
int arlink_exchange(struct ar_link *to, const void *out, size_t out_size,
                    struct ar_link *from, void *in, size_t in_size,
                    struct error *err);

int arlink_send(struct ar_link *to, const struct ar_frame *frame,
                const void *data, struct error *err);
/* The head of the next; -EREMOTEIO and what it says, of an AR_ERROR. */
int arlink_receive(struct ar_link *from, struct ar_frame *ret_frame,
                   struct error *err);
/* Tell it why this is the end; what does not go out at once does not. */
void arlink_tell(struct ar_link *to, uint16_t rank, uint16_t size,
                 const struct error *why);

#endif
