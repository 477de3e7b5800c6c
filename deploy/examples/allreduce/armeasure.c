/* What a rank measures.  All meet before each figure, so that none has somebody
 * else's time in it. */
#include "deploy/examples/allreduce/armeasure.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/mem.h"

enum { PATTERN = 1000 };
#define CALIBRATE_S 0.02

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

static void fill(struct ar_rank *r, unsigned round)
{
    for (size_t i = 0; i < r->n; i++)
        r->buffer[i] = (r->o->rank + 1) * pattern(i, round);
}

static int check(const struct ar_rank *r, unsigned round, struct error *err)
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

static void compute(struct ar_rank *r, unsigned units)
{
    for (unsigned u = 0; u < units; u++)
        for (size_t i = 0; i < AR_WORK; i++)
            r->work[i] = r->work[i] * 0.999 + 1.0 / (1.0 + (double)i);
}

/* --- with and without the card --------------------------------------------- */

int armeasure_offload(struct ar_rank *r, double *numbers, size_t n,
                      struct error *err)
{
    const struct ar_frame mine = {AR_DATA, r->o->rank, r->o->size, r->step++,
                                  n * sizeof(double)};
    struct ar_frame got;
    int e = arlink_send(&r->worker, &mine, numbers, err);
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
    return arlink_exchange(NULL, NULL, 0, &r->worker, numbers,
                           (size_t)mine.bytes, err);
}

static int sum_by_host(struct ar_rank *r, double *buffer, size_t n,
                       struct error *err)
{
    return r->o->size > 1 ? arring_sum(&r->ring, buffer, r->room, n, err) : 0;
}

static int sum(struct ar_rank *r, bool offload, struct error *err)
{
    return offload ? armeasure_offload(r, r->buffer, r->n, err)
                   : sum_by_host(r, r->buffer, r->n, err);
}

/* Nobody goes on before all are here, so that no figure has somebody else's
 * time in it. */
static int meet(struct ar_rank *r, bool offload, struct error *err)
{
    double one = 1;
    int e = offload ? armeasure_offload(r, &one, 1, err)
                    : sum_by_host(r, &one, 1, err);
    if (e == 0 && r->o->size > 1 && (int)one != r->o->size)
        e = error_set(err, EBADMSG, "%d ranks met, must be %u", (int)one,
                      r->o->size);
    return e;
}

static void *hand_over(void *arg)
{
    struct ar_rank *r = arg;
    r->result = sum(r, true, &r->err);
    return NULL;
}

/* The sum on the card while this host computes; without one, one after the
 * other. */
static int do_both(struct ar_rank *r, bool offload, struct error *err)
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

/* Units that take as long as a sum does, while all others compute, too.  The
 * first sum, for which all are woken and memory is touched, tells nothing. */
static int choose_units(struct ar_rank *r, bool offload, struct error *err)
{
    double began = 0, from = 0, spent = 0;
    unsigned n = 0;
    int e = 0;
    for (unsigned i = 0; e == 0 && i < 2; i++) {
        e = meet(r, offload, err);
        began = now();
        if (e == 0)
            e = sum(r, offload, err);
    }
    double sum_s = now() - began;
    if (e == 0)
        e = meet(r, offload, err);
    for (from = now(); spent < CALIBRATE_S; spent = now() - from, n += 16)
        compute(r, 16);
    double units = sum_s / spent * n;
    if (e == 0)
        r->units = units < 1 ? 1 : units > 1e6 ? 1000000 : (unsigned)units;
    return e;
}

static int do_round(struct ar_rank *r, bool offload, unsigned round,
                    struct ar_spent *ret_spent, struct error *err)
{
    fill(r, round);
    int e = meet(r, offload, err);
    double began = now();
    if (e == 0)
        e = sum(r, offload, err);
    double summed = now();
    if (e == 0)
        e = check(r, round, err);
    if (e == 0)
        e = meet(r, offload, err);
    if (e < 0)
        return e;
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
    *ret_spent = (struct ar_spent){summed - began, computed - from, end - both};
    return e;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of one figure, which is at `at` in each of the rounds. */
static double median(const struct ar_spent *all, unsigned n, size_t at)
{
    cleanup_free double *values = xcalloc(n, sizeof *values);
    for (unsigned i = 0; i < n; i++)
        memcpy(&values[i], (const char *)&all[i] + at, sizeof *values);
    qsort(values, n, sizeof *values, by_value);
    return values[n / 2];
}

int armeasure_run(struct ar_rank *r, bool offload, struct ar_spent *ret_spent,
                  struct error *err)
{
    const unsigned n = r->o->rounds;
    cleanup_free struct ar_spent *all = xcalloc(n, sizeof *all);
    int e = 0;
    if (r->units == 0) /* the same with offload and without */
        e = choose_units(r, offload, err);
    for (unsigned round = 0; e == 0 && round < n; round++)
        e = do_round(r, offload, round, &all[round], err);
    if (e < 0)
        return error_wrap(err, "%s offload", offload ? "with" : "without");
    *ret_spent =
        (struct ar_spent){median(all, n, offsetof(struct ar_spent, sum)),
                          median(all, n, offsetof(struct ar_spent, compute)),
                          median(all, n, offsetof(struct ar_spent, both))};
    return 0;
}

/* --- what came of it -------------------------------------------------------- */

/* How much of the shorter one was hidden behind the other, in percent. */
static double overlap(const struct ar_spent *s)
{
    double least = s->sum < s->compute ? s->sum : s->compute;
    double part = least > 0 ? (s->sum + s->compute - s->both) / least : 0;
    return 100 * (part < 0 ? 0 : part > 1 ? 1 : part);
}

static void print_row(const struct ar_options *o, const char *what,
                      const struct ar_spent *s, FILE *out)
{
    double ms = 1e3, bytes = 1024.0 * o->kib;
    (void)fprintf(out, "%-16s %9.1f %9.2f %11.2f %9.2f %10.0f\n", what,
                  s->sum > 0 ? bytes / s->sum / 1e6 : 0, s->sum * ms,
                  s->compute * ms, s->both * ms, overlap(s));
}

void armeasure_print(const struct ar_options *o, const struct ar_spent *with,
                     const struct ar_spent *without, FILE *out)
{
    (void)fprintf(out,
                  "\nranks: %u, buffer: %u KiB, rounds: %u\n"
                  "%-16s %9s %9s %11s %9s %10s\n",
                  o->size, o->kib, o->rounds, "", "MB/s", "sum ms",
                  "compute ms", "both ms", "overlap %");
    print_row(o, "with offload", with, out);
    if (!without)
        return;
    print_row(o, "without offload", without, out);
    (void)fprintf(out, "%-16s %9.2f %9.2f %11s %9.2f\n", "with / without",
                  without->sum / with->sum, with->sum / without->sum, "",
                  with->both / without->both);
}
