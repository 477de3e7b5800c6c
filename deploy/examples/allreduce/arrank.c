/* A rank: it hands its buffer to the worker on its card, computes meanwhile, and
 * checks the sum.  Beside that it does the same without the card. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "deploy/examples/allreduce/arring.h"
#include "deploy/examples/allreduce/arrole.h"
#include "lib/base/mem.h"

enum { PATTERN = 1000, WORK = 4096 };

struct rank {
    const struct ar_options *o;
    struct ar_link worker;
    struct ar_ring ring; /* of the hosts */
    uint32_t step;
    size_t n;
    double *buffer, *room;
    double work[WORK];
    unsigned units; /* of computing, which take about as long as a sum */
    int result;     /* of the thread that hands the buffer over */
    struct error err;
};

/* Seconds of a round: of the sum alone, of computing alone, of both. */
struct spent {
    double sum, compute, both;
};

static double now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t); /* there is always one */
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* --- what is summed up ------------------------------------------------------ */

/* Whole numbers, of which every sum is exact, in whichever order. */
static double pattern(size_t i, unsigned round)
{
    return (double)((i + round) % PATTERN + 1);
}

static void fill(struct rank *r, unsigned round)
{
    for (size_t i = 0; i < r->n; i++)
        r->buffer[i] = (r->o->rank + 1) * pattern(i, round);
}

static int check(const struct rank *r, unsigned round, struct error *err)
{
    double ranks = r->o->size * (r->o->size + 1) / 2.0;
    for (size_t i = 0; i < r->n; i++) {
        double wanted = ranks * pattern(i, round);
        if (r->buffer[i] < wanted || r->buffer[i] > wanted)
            return error_set(err, EBADMSG,
                             "round %u: the sum at %zu is %.17g, must be %.17g",
                             round, i, r->buffer[i], wanted);
    }
    return 0;
}

static void compute(struct rank *r, unsigned units)
{
    for (unsigned u = 0; u < units; u++)
        for (size_t i = 0; i < WORK; i++)
            r->work[i] = r->work[i] * 0.999 + 1.0 / (1.0 + (double)i);
}

/* --- with and without the card --------------------------------------------- */

static int sum_by_worker(struct rank *r, double *buffer, size_t n,
                         struct error *err)
{
    const struct ar_frame mine = {AR_DATA, r->o->rank, r->o->size, r->step++,
                                  n * sizeof(double)};
    struct ar_frame got;
    int e = arlink_send(&r->worker, &mine, buffer, err);
    if (e < 0) { /* it may have said why */
        struct error why = {0};
        if (arlink_receive(&r->worker, &got, &why) == -EREMOTEIO)
            *err = why;
        return e;
    }
    if ((e = arlink_receive(&r->worker, &got, err)) < 0)
        return e;
    if ((e = arframe_expect(&got, &mine, err)) < 0)
        return error_wrap(err, "%s", r->worker.who);
    return arlink_exchange(NULL, NULL, 0, &r->worker, buffer,
                           (size_t)mine.bytes, err);
}

static int sum_by_host(struct rank *r, double *buffer, size_t n,
                       struct error *err)
{
    return r->o->size > 1 ? arring_sum(&r->ring, buffer, r->room, n, err) : 0;
}

static int sum(struct rank *r, bool offload, struct error *err)
{
    return offload ? sum_by_worker(r, r->buffer, r->n, err)
                   : sum_by_host(r, r->buffer, r->n, err);
}

/* Nobody goes on before all are here, so that no figure has somebody else's
 * time in it. */
static int meet(struct rank *r, bool offload, struct error *err)
{
    double one = 1;
    int e = offload ? sum_by_worker(r, &one, 1, err)
                    : sum_by_host(r, &one, 1, err);
    if (e == 0 && r->o->size > 1 && (int)one != r->o->size)
        e = error_set(err, EBADMSG, "%d ranks met, must be %u", (int)one,
                      r->o->size);
    return e;
}

static void *hand_over(void *arg)
{
    struct rank *r = arg;
    r->result = sum(r, true, &r->err);
    return NULL;
}

/* The sum on the card while this host computes; without one, one after the
 * other. */
static int do_both(struct rank *r, bool offload, struct error *err)
{
    pthread_t thread;
    int e = 0;
    if (offload)
        e = -pthread_create(&thread, NULL, hand_over, r);
    else if ((e = sum(r, false, err)) < 0)
        return e;
    if (e < 0)
        return error_errno(err, -e, "a thread");
    compute(r, r->units);
    if (!offload)
        return 0;
    (void)pthread_join(thread, NULL); /* a thread of ours: joinable */
    if (r->result < 0)
        *err = r->err;
    return r->result;
}

/* As long as a sum takes, while all others compute, too. */
static void choose_units(struct rank *r, double sum_s)
{
    double from = now(), spent = 0;
    unsigned n = 0;
    for (; spent < 0.02; spent = now() - from, n += 16)
        compute(r, 16);
    double units = sum_s / spent * n;
    r->units = units < 1 ? 1 : units > 1e6 ? 1000000 : (unsigned)units;
}

static int do_round(struct rank *r, bool offload, unsigned round,
                    struct spent *s, struct error *err)
{
    fill(r, round);
    int e = meet(r, offload, err);
    double began = now();
    if (e == 0)
        e = sum(r, offload, err);
    double summed = now();
    if (e == 0)
        e = check(r, round, err);
    if (e < 0)
        return e;
    if (round == 0)
        choose_units(r, summed - began);
    double from = now();
    compute(r, r->units);
    double computed = now();
    fill(r, round + 1);
    e = meet(r, offload, err);
    double both = now();
    if (e == 0)
        e = do_both(r, offload, err);
    double end = now();
    if (e == 0)
        e = check(r, round + 1, err);
    s->sum += summed - began;
    s->compute += computed - from;
    s->both += end - both;
    return e;
}

/* How much of the shorter one was hidden behind the other, in percent. */
static double overlap(const struct spent *s)
{
    double least = s->sum < s->compute ? s->sum : s->compute;
    double part = least > 0 ? (s->sum + s->compute - s->both) / least : 0;
    return 100 * (part < 0 ? 0 : part > 1 ? 1 : part);
}

static int measure(struct rank *r, bool offload, struct error *err)
{
    struct spent s = {0};
    for (unsigned round = 0; round < r->o->rounds; round++) {
        int e = do_round(r, offload, round, &s, err);
        if (e < 0)
            return error_wrap(err, "%s offload", offload ? "with" : "without");
    }
    double bytes = (double)(r->n * sizeof(double)) * r->o->rounds;
    (void)printf("rank %u of %u: %u sums of %u KiB right, %s offload: "
                 "%.1f MB/s, overlap %.0f %%\n",
                 r->o->rank, r->o->size, 2 * r->o->rounds, r->o->kib,
                 offload ? "with" : "without",
                 s.sum > 0 ? bytes / s.sum / 1e6 : 0, overlap(&s));
    return fflush(stdout) == 0 ? 0 : error_errno(err, errno, "output");
}

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

static int greet_worker(struct rank *r, struct error *err)
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

static int join_hosts(struct rank *r, int listening, struct error *err)
{
    const struct ar_options *o = r->o;
    const unsigned next = (o->rank + 1U) % o->size;
    int timeout_ms = (int)o->timeout_s * 1000;
    struct ar_link l = AR_LINK_NONE;
    struct ar_frame f;
    int e = arring_join(&r->ring, o->hosts->of[next],
                        o->port + AR_HOST_PORTS + next, "host", timeout_ms,
                        err);
    if (e == 0)
        e = arlink_accept(listening, timeout_ms, timeout_ms, &l, err);
    if (e == 0)
        e = arlink_receive(&l, &f, err);
    if (e == 0)
        e = arring_take(&r->ring, &l, &f, err);
    arlink_close(&l);
    return e;
}

static int run(struct rank *r, int listening, struct error *err)
{
    int e = greet_worker(r, err);
    if (e == 0)
        e = measure(r, true, err);
    if (e == 0 && listening >= 0)
        e = join_hosts(r, listening, err);
    if (e == 0 && r->o->hosts)
        e = measure(r, false, err);
    return e;
}

int arrank_run(const struct ar_options *o, struct error *err)
{
    static struct rank r;
    int listening = -1, e = check_own(o, err);
    if (e == 0 && o->hosts && o->size > 1)
        e = listening = arlink_listen(o->port + AR_HOST_PORTS + o->rank, err);
    if (e < 0)
        return e;
    r = (struct rank){.o = o,
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
