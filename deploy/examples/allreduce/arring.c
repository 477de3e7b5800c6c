#include "deploy/examples/allreduce/arring.h"

#include <stdbool.h>
#include <stdio.h>

/* The part of the buffer that is segment `at` of as many as there are ranks. */
static size_t segment(const struct ar_ring *r, size_t n, unsigned at,
                      size_t *ret_from)
{
    size_t from = n * at / r->size, to = n * (at + 1U) / r->size;
    *ret_from = from;
    return to - from;
}

/* Send one segment on and receive another, into `in`. */
static int pass(struct ar_ring *r, const double *out, size_t n_out, double *in,
                size_t n_in, struct error *err)
{
    unsigned char head_out[AR_HEAD], head_in[AR_HEAD];
    const uint16_t before = (uint16_t)((r->rank + r->size - 1) % r->size);
    const struct ar_frame mine = {AR_DATA, r->rank, r->size, r->step,
                                  n_out * sizeof *out};
    const struct ar_frame wanted = {AR_DATA, before, r->size, r->step,
                                    n_in * sizeof *in};
    struct ar_frame got;
    arframe_write(&mine, head_out);
    r->step++;
    int e = arlink_exchange(&r->next, head_out, AR_HEAD, &r->before, head_in,
                            AR_HEAD, err);
    if (e < 0)
        return e;
    if ((e = arframe_read(head_in, &got, err)) < 0 ||
        (e = arframe_expect(&got, &wanted, err)) < 0)
        return error_wrap(err, "%s", r->before.who);
    return arlink_exchange(&r->next, out, n_out * sizeof *out, &r->before, in,
                           n_in * sizeof *in, err);
}

int arring_sum(struct ar_ring *r, double *buffer, double *room, size_t n,
               struct error *err)
{
    const unsigned last = r->size - 1U;
    /* first every segment is summed up on its way around the ring, then the
     * sums go around */
    for (unsigned s = 0; s < 2 * last; s++) {
        bool sums = s < last;
        unsigned turn = sums ? s : s - last;
        unsigned base = r->rank + r->size + (sums ? 0U : 1U) - turn;
        size_t from_out, from_in;
        size_t n_out = segment(r, n, base % r->size, &from_out);
        size_t n_in = segment(r, n, (base - 1) % r->size, &from_in);
        double *in = sums ? room : buffer + from_in;
        int e = pass(r, buffer + from_out, n_out, in, n_in, err);
        if (e < 0)
            return e;
        for (size_t i = 0; sums && i < n_in; i++)
            buffer[from_in + i] += room[i];
    }
    return 0;
}

int arring_join(struct ar_ring *r, const char *host, unsigned port,
                const char *what, int timeout_ms, struct error *err)
{
    const struct ar_frame join = {AR_JOIN, r->rank, r->size, 0, 0};
    char name[64];
    (void)snprintf(name, sizeof name, "the %s of rank %d", what,
                   (r->rank + 1) % r->size);
    int e = arlink_dial(host, port, name, timeout_ms, &r->next, err);
    return e < 0 ? e : arlink_send(&r->next, &join, NULL, err);
}

int arring_take(struct ar_ring *r, struct ar_link *l, const struct ar_frame *f,
                struct error *err)
{
    const uint16_t before = (uint16_t)((r->rank + r->size - 1) % r->size);
    const struct ar_frame wanted = {AR_JOIN, before, r->size, 0, 0};
    char who[AR_WHO_MAX];
    int e = arframe_expect(f, &wanted, err);
    if (e == 0 && r->before.fd >= 0)
        e = error_set(err, EPROTO, "rank %u has joined already", before);
    if (e < 0)
        return error_wrap(err, "%s", l->who);
    (void)snprintf(who, sizeof who, "the one of rank %u (%.270s)", before,
                   l->who);
    r->before = *l;
    (void)snprintf(r->before.who, sizeof r->before.who, "%s", who);
    *l = AR_LINK_NONE;
    return 0;
}

void arring_close(struct ar_ring *r)
{
    arlink_close(&r->next);
    arlink_close(&r->before);
}
