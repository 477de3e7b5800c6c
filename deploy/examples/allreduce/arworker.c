/* A worker on a card: its rank and the worker before it connect, in any order;
 * then the ring is closed, and it sums up what its rank hands it. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "deploy/examples/allreduce/arring.h"
#include "deploy/examples/allreduce/arrole.h"
#include "lib/base/mem.h"

struct worker {
    const struct ar_options *o;
    int listening, timeout_ms;
    struct ar_link rank;
    struct ar_ring ring;
    double *buffer, *room;
    size_t cap; /* bytes of each */
};

static void say(const struct worker *w, const char *what,
                const struct error *err)
{
    (void)printf("worker of rank %u: %s%s\n", w->o->rank, what,
                 err ? err->text : "");
    (void)fflush(stdout); /* a log: nobody may read it */
}

static int join_next(struct worker *w, const struct ar_hosts *hosts,
                     struct error *err)
{
    unsigned next = (w->o->rank + 1U) % w->o->size;
    if (hosts->n != w->o->size)
        return error_set(err, EPROTO, "%s names %zu workers, must name %u",
                         w->rank.who, hosts->n, w->o->size);
    if (w->o->size == 1)
        return 0;
    return arring_join(&w->ring, hosts->of[next], w->o->port + next, "worker",
                       w->timeout_ms, err);
}

static int take_rank(struct worker *w, struct ar_link *l,
                     const struct ar_frame *f, struct error *err)
{
    const struct ar_frame wanted = {AR_HELLO, w->o->rank, w->o->size, 0,
                                    f->bytes};
    static struct ar_hosts hosts;
    int r = arframe_expect(f, &wanted, err);
    if (r == 0 && w->rank.fd >= 0)
        r = error_set(err, EPROTO, "rank %u is here already", f->rank);
    if (r < 0)
        return error_wrap(err, "%s", l->who);
    cleanup_free char *text = xmalloc((size_t)f->bytes + 1);
    r = arlink_exchange(NULL, NULL, 0, l, text, (size_t)f->bytes, err);
    if (r < 0)
        return r;
    w->rank = *l;
    (void)snprintf(w->rank.who, sizeof w->rank.who, "rank %u (%.290s)", f->rank,
                   l->who);
    *l = AR_LINK_NONE;
    r = arhosts_read(text, (size_t)f->bytes, &hosts, err);
    return r < 0 ? error_wrap(err, "%s: the workers' hosts", w->rank.who)
                 : join_next(w, &hosts, err);
}

/* Somebody has connected.  Who is neither is told so, and is no reason to end:
 * anybody may connect. */
static int meet(struct worker *w, struct ar_link *l, struct error *err)
{
    struct ar_frame f;
    struct error why = {0};
    int r = arlink_receive(l, &f, &why);
    if (r == 0 && f.kind == AR_HELLO)
        r = take_rank(w, l, &f, &why);
    else if (r == 0)
        r = arring_take(&w->ring, l, &f, &why);
    if (r == 0)
        return 0;
    say(w, "refused: ", &why);
    bool ours = l->fd < 0; /* the rank's, whose ring is not to be */
    if (ours && err)
        *err = why;
    else
        arlink_tell(l, w->o->rank, w->o->size, &why);
    arlink_close(l);
    return ours ? r : 0;
}

static bool is_whole(const struct worker *w)
{
    return w->rank.fd >= 0 && (w->ring.before.fd >= 0 || w->o->size == 1);
}

/* Whoever comes first may take any time, the other one not. */
static int assemble(struct worker *w, struct error *err)
{
    while (!is_whole(w)) {
        bool first = w->rank.fd < 0 && w->ring.before.fd < 0;
        struct ar_link l = AR_LINK_NONE;
        int r = arlink_accept(w->listening, first ? -1 : w->timeout_ms,
                              w->timeout_ms, &l, err);
        if (r == -EAGAIN)
            return error_set(err, ETIMEDOUT, "%s did not connect for %u s",
                             w->rank.fd < 0 ? "its rank"
                                            : "the worker before it",
                             w->o->timeout_s);
        if (r == 0)
            r = meet(w, &l, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int make_room(struct worker *w, size_t bytes, struct error *err)
{
    if (bytes <= w->cap)
        return 0;
    free(w->buffer);
    free(w->room);
    w->buffer = malloc(bytes);
    w->room = malloc(bytes);
    w->cap = w->buffer && w->room ? bytes : 0;
    return w->cap ? 0
                  : error_set(err, ENOMEM, "no memory for buffers of %zu bytes",
                              bytes);
}

/* -ENODATA: the rank has ended. */
static int serve_once(struct worker *w, uint32_t step, struct error *err)
{
    struct ar_frame f, wanted = {AR_DATA, w->o->rank, w->o->size, step, 0};
    w->rank.timeout_ms = -1; /* it computes */
    int r = arlink_receive(&w->rank, &f, err);
    w->rank.timeout_ms = w->timeout_ms;
    if (r < 0)
        return r;
    wanted.bytes = f.bytes;
    r = arframe_expect(&f, &wanted, err);
    if (r == 0 && f.bytes % sizeof(double))
        r = error_set(err, EPROTO, "sent no whole numbers");
    if (r < 0)
        return error_wrap(err, "%s", w->rank.who);
    size_t bytes = (size_t)f.bytes;
    r = make_room(w, bytes, err);
    if (r == 0)
        r = arlink_exchange(NULL, NULL, 0, &w->rank, w->buffer, bytes, err);
    if (r == 0 && w->o->size > 1)
        r = arring_sum(&w->ring, w->buffer, w->room, bytes / sizeof(double),
                       err);
    if (r == 0)
        r = arlink_send(&w->rank, &f, w->buffer, err);
    return r == -ENODATA ? -ECONNRESET : r; /* in the middle */
}

static int serve(struct worker *w, struct error *err)
{
    const struct ar_frame ready = {AR_READY, w->o->rank, w->o->size, 0, 0};
    int r = assemble(w, err);
    if (r == 0)
        r = arlink_send(&w->rank, &ready, NULL, err);
    for (uint32_t step = 0; r == 0; step++)
        r = serve_once(w, step, err);
    return r == -ENODATA ? 0 : r;
}

int arworker_run(const struct ar_options *o, struct error *err)
{
    struct worker w = {.o = o, .timeout_ms = (int)o->timeout_s * 1000};
    int r = w.listening = arlink_listen(o->port + o->rank, err);
    if (r < 0)
        return r;
    do {
        w.rank = w.ring.next = w.ring.before = AR_LINK_NONE;
        w.ring.rank = o->rank;
        w.ring.size = o->size;
        w.ring.step = 0;
        say(&w, "waits", NULL);
        r = serve(&w, err);
        if (r < 0)
            arlink_tell(&w.rank, o->rank, o->size, err);
        say(&w, r < 0 ? "the job failed: " : "the job ended",
            r < 0 ? err : NULL);
        arlink_close(&w.rank);
        arring_close(&w.ring);
    } while (!o->once);
    (void)close(w.listening); /* nobody is served any more */
    free(w.buffer);
    free(w.room);
    return r;
}
