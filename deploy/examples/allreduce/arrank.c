/* A rank: it hands its buffer to the worker on its card, computes meanwhile, and
 * checks the sum.  Beside that it does the same without the card. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "deploy/examples/allreduce/armeasure.h"
#include "lib/base/mem.h"

/* --- connections ----------------------------------------------------------- */

/* The hostfile is right for this rank, or the ring would be another's. */
static int check_own(const struct ar_options *o, struct error *err)
{
    if (o->cards->n != o->size)
        return error_set(err, EINVAL,
                         "--workers: has %zu ranks, BIGA_SIZE is %u",
                         o->cards->n, o->size);
    if (o->peer && strcmp(o->cards->of[o->rank], o->peer) != 0)
        return error_set(err, EINVAL,
                         "--workers: has %s for rank %u, whose "
                         "BIGA_PEER_ADDRESS is %s: ranks that share a card "
                         "must follow each other",
                         o->cards->of[o->rank], o->rank, o->peer);
    if (o->hosts && o->hosts->n != o->size)
        return error_set(err, EINVAL, "--hosts: has %zu ranks, BIGA_SIZE is %u",
                         o->hosts->n, o->size);
    return 0;
}

static int greet_worker(struct ar_rank *r, struct error *err)
{
    const struct ar_options *o = r->o;
    const struct ar_frame ready = {AR_READY, o->rank, o->size, 0, 0};
    struct ar_frame hello = {AR_HELLO, o->rank, o->size, 0, 0}, got;
    cleanup_free char *text = xmalloc(AR_HELLO_MAX + 1);
    size_t size = 0;
    for (size_t i = 0; i < o->cards->n; i++)
        size += (size_t)snprintf(text + size, AR_HELLO_MAX + 1 - size, "%s\n",
                                 o->cards->of[i]);
    hello.bytes = size;
    char name[64];
    (void)snprintf(name, sizeof name, "the worker of rank %u", o->rank);
    int e = arlink_dial(o->cards->of[o->rank], o->port + o->rank, name,
                        (int)o->timeout_s * 1000, &r->worker, err);
    if (e == 0)
        e = arlink_send(&r->worker, &hello, text, err);
    if (e == 0)
        e = arlink_receive(&r->worker, &got, err);
    if (e == 0 && (e = arframe_expect(&got, &ready, err)) < 0)
        return error_wrap(err, "%s", r->worker.who);
    return e;
}

/* What each rank has, at all of them: others have 0 in its part of the sum. */
static int gather(struct ar_rank *r, const double *own, size_t n, double *all,
                  struct error *err)
{
    memset(all, 0, r->o->size * n * sizeof *all);
    memcpy(all + r->o->rank * n, own, n * sizeof *own);
    return armeasure_offload(r, all, r->o->size * n, err);
}

/* Where the next rank is: at the address by which it reaches its card, unless
 * that was told. */
static int find_next(struct ar_rank *r, char ret_host[AR_HOST_MAX + 1],
                     struct error *err)
{
    static double all[AR_RANKS_MAX * AR_ADDRESS];
    const unsigned next = (r->o->rank + 1U) % r->o->size;
    unsigned char address[AR_ADDRESS];
    double own[AR_ADDRESS];
    int e = arlink_own_address(&r->worker, address, err);
    for (size_t i = 0; e == 0 && i < AR_ADDRESS; i++)
        own[i] = address[i];
    if (e == 0)
        e = gather(r, own, AR_ADDRESS, all, err);
    if (e < 0)
        return e;
    for (size_t i = 0; i < AR_ADDRESS; i++) {
        double byte = all[next * AR_ADDRESS + i];
        if (!(byte >= 0 && byte <= UINT8_MAX))
            return error_set(err, EBADMSG,
                             "the address of rank %u has no bytes", next);
        address[i] = (unsigned char)byte;
    }
    if (r->o->hosts)
        (void)snprintf(ret_host, AR_HOST_MAX + 1, "%s", r->o->hosts->of[next]);
    else /* it has room for every address */
        (void)inet_ntop(AF_INET6, address, ret_host, AR_HOST_MAX + 1);
    return 0;
}

static int join_hosts(struct ar_rank *r, int listening, struct error *err)
{
    const struct ar_options *o = r->o;
    const unsigned next = (o->rank + 1U) % o->size;
    int timeout_ms = (int)o->timeout_s * 1000;
    char host[AR_HOST_MAX + 1] = "";
    struct ar_link l = AR_LINK_NONE;
    struct ar_frame f;
    int e = find_next(r, host, err);
    if (e == 0)
        e = arring_join(&r->ring, host, o->port + AR_HOST_PORTS + next, "host",
                        timeout_ms, err);
    if (e == 0)
        e = arlink_accept(listening, timeout_ms, timeout_ms, &l, err);
    if (e == 0)
        e = arlink_receive(&l, &f, err);
    if (e == 0)
        e = arring_take(&r->ring, &l, &f, err);
    arlink_close(&l);
    return e;
}

/* --- the whole ------------------------------------------------------------- */

enum { FIGURES = sizeof(struct ar_spent) / sizeof(double) };

static int mean(struct ar_rank *r, struct ar_spent *s, struct error *err)
{
    static double all[AR_RANKS_MAX * FIGURES];
    const double own[FIGURES] = {s->sum, s->compute, s->both};
    double sums[FIGURES] = {0};
    int e = gather(r, own, FIGURES, all, err);
    for (size_t i = 0; i < (size_t)r->o->size * FIGURES; i++)
        sums[i % FIGURES] += all[i] / r->o->size;
    if (e == 0)
        *s = (struct ar_spent){sums[0], sums[1], sums[2]};
    return e;
}

static int print(const struct ar_rank *r, const struct ar_spent *with,
                 const struct ar_spent *without, struct error *err)
{
    const struct ar_options *o = r->o;
    unsigned sums = 2 * o->rounds * (without ? 2 : 1);
    (void)printf("rank %u of %u: %u sums of %u KiB, all right\n", o->rank,
                 o->size, sums, o->kib);
    if (o->rank == 0)
        armeasure_print(o, with, without, stdout);
    return fflush(stdout) == 0 ? 0 : error_errno(err, errno, "output");
}

static int run(struct ar_rank *r, int listening, struct error *err)
{
    struct ar_spent with, without;
    bool both = !r->o->offload_only;
    int e = greet_worker(r, err);
    if (e == 0)
        e = armeasure_run(r, true, &with, err);
    if (e == 0 && listening >= 0)
        e = join_hosts(r, listening, err);
    if (e == 0 && both)
        e = armeasure_run(r, false, &without, err);
    if (e == 0)
        e = mean(r, &with, err);
    if (e == 0 && both)
        e = mean(r, &without, err);
    return e < 0 ? e : print(r, &with, both ? &without : NULL, err);
}

int arrank_run(const struct ar_options *o, struct error *err)
{
    static struct ar_rank r;
    int listening = -1, e = check_own(o, err);
    if (e == 0 && !o->offload_only && o->size > 1)
        e = listening = arlink_listen(o->port + AR_HOST_PORTS + o->rank, err);
    if (e < 0)
        return e;
    r = (struct ar_rank){.o = o,
                         .worker = AR_LINK_NONE,
                         .ring = {.rank = o->rank,
                                  .size = o->size,
                                  .next = AR_LINK_NONE,
                                  .before = AR_LINK_NONE},
                         .n = (size_t)o->kib * 1024 / sizeof(double)};
    r.buffer = xcalloc(r.n, sizeof(double));
    r.room = xcalloc(r.n, sizeof(double));
    e = run(&r, listening, err);
    arlink_close(&r.worker);
    arring_close(&r.ring);
    if (listening >= 0)
        (void)close(listening); /* nobody else is to come */
    free(r.buffer);
    free(r.room);
    return e;
}
