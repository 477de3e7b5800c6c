#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>

#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "lib/io/thread_name.h"
#include "router/log/log_copier_private.h"

enum {
    HEAD_ARGS = 9,         /* before the files */
    FILE_ARG_MAX = 96,     /* characters beside the path */
    CALL_MS = 15000,       /* of a call, beside its waiting */
    OUTPUT_MORE = 1 << 20, /* bytes of a call beside round_max */
    PACE_MS = 100,         /* from one call that brought nothing to another */
    STATUS_USAGE = 2,      /* of biga-card */
};

struct call {
    char texts[HEAD_ARGS][24];
    const char *argv[HEAD_ARGS + LOG_CONTAINERS_MAX];
    size_t n;
    uint64_t gen, seq;
    bool hurries; /* those before it return at once, when it gets there */
    unsigned wait_ms;
    struct arena arena;
};

/* --- what is asked -------------------------------------------------------- */

static void add_number(struct call *call, uint64_t value)
{
    char *text = call->texts[call->n];
    (void)snprintf(text, sizeof call->texts[0], "%" PRIu64, value);
    call->argv[call->n++] = text;
}

static void add_file(struct call *call, struct log_container *k, uint64_t seq,
                     uint64_t rate)
{
    size_t size = strlen(k->remote_path) + FILE_ARG_MAX;
    char *text = arena_alloc(&call->arena, size);
    if (k->freed > k->freed_sent) {
        k->freed_sent = k->freed;
        k->sent_seq = seq;
    }
    (void)snprintf(
        text, size, "%" PRIu32 " %d %" PRIu64 " %" PRIu64 " %" PRIu64 " %s",
        k->tag, k->ends ? 1 : 0, k->next,
        k->freed > k->freed_done ? k->freed : 0, rate, k->remote_path);
    call->argv[call->n++] = text;
}

static void make_head(const struct log_remote *r, const char *start,
                      struct call *call)
{
    const struct log_copier_config *config = &r->copier->config;
    call->argv[call->n++] = "/biga-card";
    call->argv[call->n++] = "follow";
    call->argv[call->n++] = r->copier->remote_dir;
    (void)snprintf(call->texts[call->n], sizeof call->texts[0], "%" PRIx64,
                   r->gen);
    call->argv[call->n] = call->texts[call->n];
    call->n++;
    add_number(call, r->seq);
    call->argv[call->n++] = start;
    add_number(call, call->wait_ms);
    /* the first bytes after a silence are not kept waiting */
    add_number(call, r->chatty ? config->linger_ms : config->linger_ms / 8);
    add_number(call, config->round_max);
}

static bool is_followed(const struct log_container *k)
{
    return k->sink && !k->done && k->retry_ms == 0;
}

static void launch(struct log_remote *r, struct call *call)
{
    const char *start = r->n_flight == 0            ? "first"
                        : r->version != r->launched ? "hurry"
                                                    : "next";
    /* none stands by behind a long one: what comes after that ends it */
    if (r->n_flight > 0 || r->version != r->launched)
        r->wait_ms = r->copier->config.wait_ms;
    call->wait_ms = r->wait_ms;
    call->hurries = r->n_flight > 0 && r->version != r->launched;
    call->gen = r->gen;
    call->seq = ++r->seq;
    r->n_flight++;
    r->launched = r->version;
    make_head(r, start, call);
    for (size_t i = 0; i < r->n; i++)
        if (is_followed(r->list[i]))
            add_file(call, r->list[i], r->seq, r->copier->config.rate_max);
}

/* --- chains --------------------------------------------------------------- */

static void begin_chain(struct log_remote *r)
{
    /* random: rounds of a router that was killed may be under way */
    if (getrandom(&r->gen, sizeof r->gen, 0) != sizeof r->gen || !r->gen)
        r->gen = (uint64_t)clock_ns() | 1;
    r->seq = r->applied = 0;
    r->n_flight = 0;
    r->wait_ms = r->copier->config.wait_ms;
    for (size_t i = 0; i < r->n; i++) {
        r->list[i]->freed_sent = r->list[i]->freed_done;
        r->list[i]->sent_seq = 0;
    }
}

static void break_chain(struct log_remote *r, const struct error *err)
{
    struct log_copier *c = r->copier;
    c->counts.faults++;
    if (r->backoff.failures == 0)
        log_event(LOG_WARN, "log-remote", "remote", r->name, "error", err->text,
                  NULL);
    r->retry_ms = clock_ms() + backoff_fail(&r->backoff);
    r->chatty = r->full = false;
    begin_chain(r);
    log_remote_wake(r);
}

static int judge(const struct log_remote *r, const struct cri_exec *exec,
                 struct error *err)
{
    if (exec->exit_code == 0)
        return 0;
    return error_set(
        err, EIO, "biga-card follow on %s ended with exit code %d%s: %.300s",
        r->name, (int)exec->exit_code,
        exec->exit_code == STATUS_USAGE ? " (is it as new as this router?)"
                                        : "",
        str_text(&exec->err));
}

/* A card whose logs are silent is asked ever more seldom. */
static void set_wait(struct log_remote *r)
{
    const struct log_copier_config *config = &r->copier->config;
    if (r->chatty)
        r->wait_ms = config->wait_ms;
    else if (r->n_flight == 0 && r->wait_ms < config->wait_max_ms)
        r->wait_ms = r->wait_ms < config->wait_max_ms / 2 ? 2 * r->wait_ms
                                                          : config->wait_max_ms;
}

/* A call that was to end the waits of those before it, and failed, breaks the
 * chain at once: nothing else ends those waits, and they may be long. */
static bool is_next(const struct log_remote *r, const struct call *call, int rc)
{
    return r->applied == call->seq - 1 || (rc && call->hurries && !r->applying);
}

/* What a round has brought, after those before it. */
static void settle(struct log_remote *r, const struct call *call, int rc,
                   const struct cri_exec *exec, struct error *err)
{
    struct log_copier *c = r->copier;
    if (!rc)
        rc = judge(r, exec, err);
    while (!c->stopped && call->gen == r->gen && !is_next(r, call, rc))
        (void)clock_wait(&r->wake, &c->lock, INT64_MAX);
    if (c->stopped || call->gen != r->gen)
        return;
    r->applying = true;
    if (!rc)
        rc = log_apply(r, exec, call->seq, err);
    r->applying = false;
    if (c->stopped)
        return;
    if (rc) {
        break_chain(r, err);
        return;
    }
    if (r->backoff.failures > 0)
        log_event(LOG_INFO, "log-remote", "remote", r->name, "error", "", NULL);
    backoff_succeed(&r->backoff);
    c->counts.rounds++;
    r->applied = call->seq;
    r->n_flight--;
    set_wait(r);
    (void)pthread_cond_broadcast(&c->wake);
    /* at rest one lane is enough, and the others sleep on */
    if (r->n_flight > 0 || r->chatty)
        (void)pthread_cond_broadcast(&r->wake);
}

/* --- threads -------------------------------------------------------------- */

/* A card that answers at once, and with nothing, is not asked all the time. */
static void keep_pace(struct log_remote *r, uint64_t gen, int64_t begun_ms)
{
    if (gen == r->gen && r->n_flight == 0 && !r->chatty &&
        r->version == r->launched && r->retry_ms < begun_ms + PACE_MS)
        r->retry_ms = begun_ms + PACE_MS;
}

static void call_remote(struct log_remote *r, unsigned lane)
{
    struct log_copier *c = r->copier;
    struct call *call = xcalloc(1, sizeof *call);
    struct error err = {0};
    struct cri_exec exec = {.max = c->config.round_max + OUTPUT_MORE};
    launch(r, call);
    unsigned ms = call->wait_ms + (LOG_LANES - 1) * c->config.wait_ms + CALL_MS;
    int64_t begun_ms = clock_ms();
    (void)pthread_mutex_unlock(&c->lock);
    int rc = c->config.exec(c->config.ctx, r->name, lane, call->argv, call->n,
                            ms, &exec, &err);
    (void)pthread_mutex_lock(&c->lock);
    settle(r, call, rc, &exec, &err);
    keep_pace(r, call->gen, begun_ms);
    (void)pthread_mutex_unlock(&c->lock);
    if (rc == 0)
        cri_exec_fini(&exec);
    arena_fini(&call->arena);
    free(call);
    (void)pthread_mutex_lock(&c->lock);
}

/* Is there anything to follow?  Those whose file could not be written are
 * tried again when that is due. */
static bool has_work(struct log_remote *r, int64_t now, int64_t *due)
{
    bool any = false;
    for (size_t i = 0; i < r->n; i++) {
        struct log_container *k = r->list[i];
        if (k->retry_ms && k->retry_ms <= now) {
            k->retry_ms = 0;
            r->version++;
        }
        if (k->retry_ms && k->retry_ms < *due)
            *due = k->retry_ms;
        any |= is_followed(k);
    }
    return any;
}

/* Those of lower numbers go first, so that the others may rest. */
static bool is_turn(const struct log_remote *r, unsigned lane)
{
    while (lane > 0)
        if (!r->calling[--lane])
            return false;
    return true;
}

static bool may_call(struct log_remote *r, unsigned lane, int64_t *due)
{
    int64_t now = clock_ms();
    if (r->cut || !is_turn(r, lane) || !has_work(r, now, due))
        return false;
    if (now < r->retry_ms) {
        *due = r->retry_ms < *due ? r->retry_ms : *due;
        return false;
    }
    return r->n_flight == 0 ||
           (r->version != r->launched && r->n_flight < LOG_LANES) ||
           (r->chatty && r->n_flight < (r->full ? LOG_LANES : 2));
}

/* Those that still wait for bytes return at once. */
static void end_others(struct log_remote *r, unsigned lane)
{
    struct log_copier *c = r->copier;
    if (!c->ended || r->n_flight == 0 || r->cut)
        return;
    struct call call = {.n = 0};
    struct error err;
    struct cri_exec exec = {0};
    begin_chain(r);
    r->seq = 1;
    make_head(r, "first", &call);
    call.argv[6] = call.argv[7] = "0";
    (void)pthread_mutex_unlock(&c->lock);
    if (c->config.exec(c->config.ctx, r->name, lane, call.argv, call.n, CALL_MS,
                       &exec, &err) == 0)
        cri_exec_fini(&exec);
    (void)pthread_mutex_lock(&c->lock);
}

static void rest_lane(struct log_remote *r, unsigned lane)
{
    struct log_copier *c = r->copier;
    if (!c->config.rest)
        return;
    (void)pthread_mutex_unlock(&c->lock);
    c->config.rest(c->config.ctx, r->name, lane);
    (void)pthread_mutex_lock(&c->lock);
}

static void name_lane(const struct log_remote *r, unsigned lane)
{
    char what[8];
    (void)snprintf(what, sizeof what, "log%u", lane);
    thread_name(what, r->name);
}

void *log_round_thread(void *remote)
{
    struct log_remote *r = remote;
    struct log_copier *c = r->copier;
    (void)pthread_mutex_lock(&c->lock);
    int64_t rest = INT64_MAX; /* when it is to */
    unsigned lane = r->n_begun++;
    name_lane(r, lane);
    if (!r->gen)
        begin_chain(r);
    while (!c->stopped) {
        int64_t due = INT64_MAX;
        if (may_call(r, lane, &due)) {
            r->calling[lane] = true;
            if (r->chatty || due < INT64_MAX)
                (void)pthread_cond_broadcast(&r->wake); /* the next's turn */
            call_remote(r, lane);
            r->calling[lane] = false;
            if (lane > 0)
                (void)pthread_cond_broadcast(&r->wake); /* a lower one's */
            rest = clock_ms() + c->config.rest_ms;
        } else if (clock_ms() < rest) {
            (void)clock_wait(&r->wake, &c->lock, due < rest ? due : rest);
        } else {
            rest = INT64_MAX;
            rest_lane(r, lane);
        }
    }
    while (!c->ended)
        (void)clock_wait(&r->wake, &c->lock, INT64_MAX);
    end_others(r, lane);
    (void)pthread_mutex_unlock(&c->lock);
    return NULL;
}
