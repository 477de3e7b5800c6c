/* Calls to a remote, each on a connection of its own. */
#include "router/remote/remote_call.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/io/clock.h"
#include "router/remote/remote_private.h"

/* --- may it be sent? ------------------------------------------------------ */

/* As if the remote had said it, for who tells the kubelet. */
static int end_here(struct grpc_end *ret_end, int code, int e,
                    const struct error *err)
{
    ret_end->code = code;
    ret_end->unsent = true;
    (void)snprintf(ret_end->message, sizeof ret_end->message, "%s", err->text);
    return e;
}

static int is_down(struct remote *r, struct grpc_end *ret_end,
                   struct error *err)
{
    int e = error_set(err, EHOSTDOWN,
                      "%s does not answer (%s, since %lld ms): %.300s",
                      r->config.place.name, act_health_name(r->health.now),
                      (long long)(clock_ms() - r->since_ms), r->reason);
    return end_here(ret_end, GRPC_UNAVAILABLE, e, err);
}

static int is_cancelled(struct remote *r, struct grpc_end *ret_end,
                        struct error *err)
{
    int e = error_set(err, ECANCELED, "%s: %s", r->config.place.name,
                      r->stopping ? "the router stops"
                                  : "nobody waits for the call any more");
    return end_here(ret_end, GRPC_CANCELLED, e, err);
}

/* One that was never asked is waited for as long as a probe may take, one that
 * has just failed a probe until it is known whether it is lost: a runtime that
 * is busy or being restarted for a moment fails no call. */
static int64_t judged_by(const struct remote *r, int64_t due)
{
    int64_t probes = r->judged ? r->health.lost_ms
                               : health_deadline_ms(&r->health);
    int64_t by = r->health.since_ms + probes;
    return by < due ? by : due;
}

static bool is_unwanted(const struct remote *r, const struct remote_ask *ask)
{
    return r->stopping || (ask->unwanted && ask->unwanted(ask->ctx));
}

static int wait_for_turn(struct remote *r, const struct remote_ask *ask,
                         int64_t due, struct grpc_end *ret_end,
                         struct error *err)
{
    while (r->health.now == ACT_SUSPECT && !is_unwanted(r, ask) &&
           clock_ms() < judged_by(r, due))
        (void)clock_wait(&r->news, &r->lock, judged_by(r, due));
    for (;;) {
        if (is_unwanted(r, ask))
            return is_cancelled(r, ret_end, err);
        if (r->health.now != ACT_READY)
            return is_down(r, ret_end, err);
        if (r->n_calls < REMOTE_CALLS_MAX)
            return 0;
        if (clock_ms() >= due)
            break;
        (void)clock_wait(&r->news, &r->lock, due);
    }
    int e = error_set(err, ETIMEDOUT,
                      "%s: %d calls are under way, and none has ended in time",
                      r->config.place.name, REMOTE_CALLS_MAX);
    return end_here(ret_end, GRPC_DEADLINE_EXCEEDED, e, err);
}

/* --- connections ---------------------------------------------------------- */

static void enter(struct remote *r, struct remote_calling *c)
{
    r->n_calls++;
    r->stirred = true;
    if (r->n_idle)
        c->grpc = r->idle[--r->n_idle];
    if (r->n_idle < r->n_spare)
        r->n_spare = r->n_idle;
    c->next = r->calls;
    r->calls = c;
}

/* The connection, when it is of no more use. */
static struct grpc *leave(struct remote *r, struct remote_calling *c, bool well)
{
    struct remote_calling **at = &r->calls;
    struct grpc *grpc = c->grpc;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    r->n_calls--;
    r->stirred = true;
    (void)pthread_cond_broadcast(&r->news);
    c->grpc = NULL;
    if (!grpc || !well || r->stopping || r->n_idle == REMOTE_IDLE_MAX)
        return grpc;
    grpc_resume(grpc);
    r->idle[r->n_idle++] = grpc;
    return NULL;
}

void remote_cut_calls(struct remote *r)
{
    for (struct remote_calling *c = r->calls; c; c = c->next) {
        c->cut = true;
        if (c->grpc)
            grpc_interrupt(c->grpc);
    }
}

void remote_nudge(struct remote *r)
{
    hold_lock(&r->lock);
    for (struct remote_calling *c = r->calls; c; c = c->next)
        if (c->grpc && c->ask->unwanted && c->ask->unwanted(c->ask->ctx))
            grpc_interrupt(c->grpc);
    (void)pthread_cond_broadcast(&r->news); /* also who waits for his turn */
}

/* It may have been cut, or be unwanted, before it had a connection. */
static int connect_call(struct remote *r, struct remote_calling *c,
                        struct error *err)
{
    struct grpc *made = NULL;
    const struct grpc_config config = card_grpc(&r->config.place);
    if (!c->grpc) {
        int e = grpc_create(&config, &made, err);
        if (e < 0)
            return e;
    }
    hold_lock(&r->lock);
    if (made)
        c->grpc = made;
    bool unwanted = c->ask->unwanted && c->ask->unwanted(c->ask->ctx);
    if (c->cut || unwanted)
        grpc_interrupt(c->grpc);
    return 0;
}

size_t remote_tidy(struct remote *r)
{
    struct grpc *spare[REMOTE_IDLE_MAX];
    size_t n;
    (void)pthread_mutex_lock(&r->lock);
    for (n = 0; n < r->n_spare; n++)
        spare[n] = r->idle[--r->n_idle];
    r->n_spare = r->n_idle;
    (void)pthread_mutex_unlock(&r->lock);
    for (size_t i = 0; i < n; i++)
        grpc_destroy(spare[i]);
    return n;
}

/* --- the call ------------------------------------------------------------- */

/* A call that found nobody there: the thread looks at once. */
static void suspect(struct remote *r, int e)
{
    bool answered = e == 0 || e == -EREMOTEIO || e == -EMSGSIZE ||
                    e == -ECANCELED || e == -EINVAL;
    if (answered || r->health.now != ACT_READY)
        return;
    r->health.due_ms = clock_ms();
    r->list_ms = r->health.due_ms;
    (void)pthread_cond_signal(&r->wake);
}

static int end_call(struct remote *r, struct remote_calling *c, int e,
                    struct grpc_end *ret_end, struct error *err)
{
    (void)pthread_mutex_lock(&r->lock);
    struct grpc *old = leave(r, c, e == 0 || e == -EREMOTEIO);
    suspect(r, e);
    if (e == -ECANCELED) {
        bool unsent = ret_end->unsent;
        e = c->cut && !r->stopping ? is_down(r, ret_end, err)
                                   : is_cancelled(r, ret_end, err);
        ret_end->unsent = unsent;
    }
    (void)pthread_mutex_unlock(&r->lock);
    grpc_destroy(old);
    return e;
}

int remote_call(struct remote *r, const struct remote_ask *ask,
                struct str *ret_reply, struct grpc_end *ret_end,
                struct error *err)
{
    struct error mine = {0};
    struct remote_calling c = {.ask = ask};
    int64_t due = clock_ms() + ask->ms;
    err = err ? err : &mine;
    *ret_end = (struct grpc_end){.code = -1};
    (void)pthread_mutex_lock(&r->lock);
    int e = wait_for_turn(r, ask, due, ret_end, err);
    if (e == 0)
        enter(r, &c);
    (void)pthread_mutex_unlock(&r->lock);
    if (e < 0)
        return e;
    e = connect_call(r, &c, err);
    if (e < 0) {
        ret_end->unsent = true;
    } else {
        int64_t left = due - clock_ms();
        e = grpc_call(c.grpc, ask->method->path, ask->request.data,
                      ask->request.size, left > 0 ? (unsigned)left : 1,
                      ret_reply, ret_end, err);
    }
    return end_call(r, &c, e, ret_end, err);
}
