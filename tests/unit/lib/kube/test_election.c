/* Who holds the lease: step by step, and many random schedules in which
 * requests are lost or late, processes stop or die, clocks are wrong, and
 * somebody deletes the lease.  Never do two hold it. */
#include "lib/kube/election.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/mem.h"
#include "tests/lib/sanitized.h"

#define NOW "2026-01-02T03:04:05.000006Z"

static const struct election_config config_a = {"a", 10000, 2000, 6000};
static const struct election_config config_b = {"b", 10000, 2000, 6000};

/* --- an API server with one Lease --------------------------------------- */

struct server {
    struct kube_lease lease;
    bool exists;
    unsigned version, uids;
};

static bool server_write(struct server *s, const struct kube_lease *lease,
                         struct kube_lease *ret_lease)
{
    bool creates = !lease->resource_version[0];
    if (creates && s->exists)
        return false;
    if (!creates &&
        (!s->exists || strcmp(lease->uid, s->lease.uid) != 0 ||
         strcmp(lease->resource_version, s->lease.resource_version) != 0))
        return false;
    s->lease = *lease;
    s->exists = true;
    if (creates)
        (void)snprintf(s->lease.uid, sizeof s->lease.uid, "uid%u", ++s->uids);
    (void)snprintf(s->lease.resource_version, sizeof s->lease.resource_version,
                   "%u", ++s->version);
    *ret_lease = s->lease;
    return true;
}

static void look(struct election *e, const struct server *s, int64_t now)
{
    election_observe(e, s->exists ? &s->lease : NULL, now);
}

/* What `e` is to do at `now`, done at once. */
static enum election_move act(struct election *e, struct server *s, int64_t now)
{
    struct kube_lease lease, written;
    look(e, s, now);
    enum election_move move = election_next(e, now);
    if (move == ELECTION_WAIT)
        return move;
    election_lease(e, move, NOW, &lease);
    cr_assert(server_write(s, &lease, &written), "move %d", (int)move);
    election_written(e, &written, now);
    return move;
}

/* A server whose lease `e` holds since `now`: given back, so free at once. */
static void lead_at(struct election *e, struct server *s, int64_t now)
{
    struct kube_lease given = {.name = "l", .duration_s = 1};
    cr_assert(server_write(s, &given, &given));
    cr_assert_eq(act(e, s, now), ELECTION_TAKE);
    cr_assert(election_holds(e, now, 0));
}

/* --- step by step ------------------------------------------------------- */

Test(election, a_new_lease_is_held_only_after_a_while)
{
    struct server s = {0};
    struct election a;
    election_init(&a, &config_a);
    cr_expect_eq(act(&a, &s, 1000), ELECTION_CREATE);
    cr_expect_not(election_holds(&a, 1000, 0));
    cr_expect_str_eq(s.lease.holder, "a");
    cr_expect_str_eq(s.lease.acquired, NOW);
    cr_expect_eq(s.lease.duration_s, 10);
    cr_expect_eq(s.lease.transitions, 0);
    int64_t now = 1000 + election_wait_ms(&a, 1000);
    int64_t from = now + 10000;
    for (; now < from; now += election_wait_ms(&a, now)) {
        cr_expect_eq(act(&a, &s, now), ELECTION_RENEW);
        cr_expect_not(election_holds(&a, now, 0), "at %d", (int)now);
    }
    cr_expect_eq(act(&a, &s, now), ELECTION_RENEW);
    cr_expect(election_holds(&a, now, 3000));
}

Test(election, a_holder_renews_and_stops_by_itself)
{
    struct server s = {0};
    struct election a;
    election_init(&a, &config_a);
    lead_at(&a, &s, 0);
    cr_expect_eq(election_wait_ms(&a, 0), 2000);
    cr_expect_eq(act(&a, &s, 1999), ELECTION_WAIT);
    cr_expect_eq(election_wait_ms(&a, 1999), 1);
    cr_expect_eq(act(&a, &s, 2000), ELECTION_RENEW);
    cr_expect_eq(s.lease.transitions, 1);
    /* the deadline counts from where the renewal began, less the call */
    cr_expect(election_holds(&a, 7999, 0));
    cr_expect_not(election_holds(&a, 8000, 0));
    cr_expect(election_holds(&a, 4999, 3000));
    cr_expect_not(election_holds(&a, 5000, 3000));
    cr_expect_not(election_holds(&a, 3000, -1), "no call takes less than 0");
    /* a renewal that is due and has failed is tried again soon */
    cr_expect_eq(election_wait_ms(&a, 4000), 500);
    /* nobody has taken it meanwhile: the write says so */
    cr_expect_eq(act(&a, &s, 20000), ELECTION_RENEW);
    cr_expect(election_holds(&a, 20000, 0));
}

Test(election, another_waits_until_it_has_not_changed_for_long)
{
    struct server s = {0};
    struct election a, b;
    election_init(&a, &config_a);
    election_init(&b, &config_b);
    lead_at(&a, &s, 0);
    cr_expect_eq(act(&b, &s, 500), ELECTION_WAIT);
    cr_expect_eq(election_wait_ms(&b, 500), 1000);
    cr_expect_eq(act(&a, &s, 2000), ELECTION_RENEW);
    cr_expect_eq(act(&b, &s, 3000), ELECTION_WAIT);
    cr_expect_eq(act(&b, &s, 12900), ELECTION_WAIT);
    cr_expect_eq(election_wait_ms(&b, 12900), 100, "to the millisecond");
    cr_expect_eq(act(&b, &s, 12999), ELECTION_WAIT);
    cr_expect_eq(act(&b, &s, 13000), ELECTION_TAKE);
    cr_expect(election_holds(&b, 13000, 3000));
    cr_expect_eq(s.lease.transitions, 2);
    cr_expect_str_eq(s.lease.holder, "b");
    cr_expect_eq(act(&a, &s, 13001), ELECTION_WAIT);
    cr_expect_not(election_holds(&a, 13001, 0));
}

Test(election, what_is_given_back_is_free_at_once)
{
    struct server s = {0};
    struct election a, b;
    struct kube_lease lease, written;
    election_init(&a, &config_a);
    election_init(&b, &config_b);
    lead_at(&a, &s, 0);
    cr_expect_eq(act(&b, &s, 100), ELECTION_WAIT);
    election_resign(&a, 1);
    cr_expect_not(election_holds(&a, 1, 0));
    cr_expect_eq(election_next(&a, 150), ELECTION_RELEASE);
    election_lease(&a, ELECTION_RELEASE, NOW, &lease);
    cr_expect_eq(lease.duration_s, 1);
    cr_assert(server_write(&s, &lease, &written));
    election_written(&a, &written, 200);
    cr_expect_not(election_holds(&a, 200, 0));
    cr_expect_eq(act(&b, &s, 300), ELECTION_TAKE);
    cr_expect(election_holds(&b, 300, 0));
}

/* Else whoever takes it would not wait for the holder of the one before. */
Test(election, a_new_lease_is_not_given_back_before_it_is_held)
{
    struct server s = {0};
    struct election a;
    election_init(&a, &config_a);
    cr_expect_eq(act(&a, &s, 0), ELECTION_CREATE);
    cr_expect_eq(act(&a, &s, 500), ELECTION_RENEW);
    struct election early = a;
    election_resign(&early, 10499);
    cr_expect_eq(election_next(&early, 10499), ELECTION_WAIT);
    cr_expect_eq(act(&a, &s, 10499), ELECTION_RENEW);
    election_resign(&a, 10500);
    cr_expect_eq(election_next(&a, 10500), ELECTION_RELEASE);
}

Test(election, what_another_has_taken_is_not_given_back)
{
    struct server s = {0};
    struct election a, b;
    election_init(&a, &config_a);
    election_init(&b, &config_b);
    lead_at(&a, &s, 0);
    cr_expect_eq(act(&b, &s, 0), ELECTION_WAIT);
    election_resign(&b, 5000);
    cr_expect_eq(act(&b, &s, 20000), ELECTION_WAIT, "b has resigned");
    election_init(&b, &config_b);
    cr_expect_eq(act(&b, &s, 0), ELECTION_WAIT);
    election_resign(&a, 5000);
    cr_expect_eq(act(&b, &s, 10000), ELECTION_TAKE);
    cr_expect_eq(election_next(&a, 10000), ELECTION_RELEASE, "a has not seen");
    cr_expect_eq(act(&a, &s, 10000), ELECTION_WAIT);
}

/* By hand, not by its holder: he may not know it yet. */
Test(election, an_emptied_holder_is_not_given_back)
{
    struct server s = {0};
    struct election a, b;
    election_init(&a, &config_a);
    election_init(&b, &config_b);
    lead_at(&a, &s, 0);
    struct kube_lease edited = s.lease;
    edited.holder[0] = '\0';
    cr_assert(server_write(&s, &edited, &edited));
    cr_expect_eq(act(&b, &s, 100), ELECTION_WAIT);
    cr_expect_eq(act(&b, &s, 10099), ELECTION_WAIT);
    cr_expect_eq(act(&b, &s, 10100), ELECTION_TAKE);
}

Test(election, a_deleted_lease_is_nobodys)
{
    struct server s = {0};
    struct election a, b;
    election_init(&a, &config_a);
    election_init(&b, &config_b);
    lead_at(&a, &s, 0);
    cr_expect_eq(act(&b, &s, 100), ELECTION_WAIT);
    s.exists = false;
    cr_expect_eq(act(&b, &s, 200), ELECTION_CREATE);
    cr_expect_eq(act(&b, &s, 700), ELECTION_RENEW);
    cr_expect(election_holds(&a, 5999, 0), "it cannot know");
    cr_expect_not(election_holds(&b, 700, 0));
    look(&a, &s, 6000);
    cr_expect_not(a.leading);
    cr_expect_eq(act(&b, &s, 10700), ELECTION_RENEW);
    cr_expect(election_holds(&b, 10700, 0));
}

/* A container that starts again in its pod may have calls of the one before
 * on their way. */
Test(election, our_own_name_from_before_is_not_trusted)
{
    struct server s = {0};
    struct election a, again;
    election_init(&a, &config_a);
    lead_at(&a, &s, 0);
    election_init(&again, &config_a);
    cr_expect_eq(act(&again, &s, 100), ELECTION_RENEW);
    cr_expect_not(election_holds(&again, 100, 0));
    for (int64_t now = 2100; now <= 10100; now += 2000)
        cr_expect_eq(act(&again, &s, now), ELECTION_RENEW);
    cr_expect(election_holds(&again, 10100, 0));
}

Test(election, a_longer_duration_of_another_counts_up_to_a_limit)
{
    struct server s = {0};
    struct election b;
    struct kube_lease theirs = {.name = "l", .holder = "c", .duration_s = 15};
    cr_assert(server_write(&s, &theirs, &theirs));
    election_init(&b, &config_b);
    cr_expect_eq(act(&b, &s, 0), ELECTION_WAIT);
    cr_expect_eq(act(&b, &s, 14999), ELECTION_WAIT);
    theirs.duration_s = INT32_MAX;
    cr_assert(server_write(&s, &theirs, &theirs));
    cr_expect_eq(act(&b, &s, 15000), ELECTION_WAIT);
    cr_expect_eq(act(&b, &s, 74999), ELECTION_WAIT);
    cr_expect_eq(act(&b, &s, 75000), ELECTION_TAKE);
}

Test(election, a_lost_answer_is_made_good_by_the_next_look)
{
    struct server s = {0};
    struct election a;
    struct kube_lease lease, lost, given = {.name = "l", .duration_s = 1};
    cr_assert(server_write(&s, &given, &given));
    election_init(&a, &config_a);
    look(&a, &s, 0);
    election_lease(&a, ELECTION_TAKE, NOW, &lease);
    cr_assert(server_write(&s, &lease, &lost));
    cr_expect_not(election_holds(&a, 0, 0));
    cr_expect_eq(act(&a, &s, 500), ELECTION_RENEW);
    cr_expect(election_holds(&a, 500, 0));
}

/* --- random schedules ------------------------------------------------------------
 *
 * True time goes on in steps.  A candidate asks, looks, writes and waits as
 * a thread of its own would, by its own clock, which is wrong by up to a fifth
 * in either direction and starts anywhere.  It may stop too, but while it asks
 * to hold or holds, for what measures nothing ends nothing. */

enum { CANDIDATES = 3, CALL_MS = 3000, TIMEOUT_MS = ELECTION_CALL_MS };

struct request {
    bool pending, answered, ok, write;
    int64_t arrives, answers; /* true time; INT64_MAX: never */
    struct kube_lease lease;  /* to write */
    struct kube_lease reply;
    bool reply_exists;
};

struct candidate {
    struct election election;
    struct election_config config;
    char identity[32];
    struct request request;
    struct request late; /* given up, and still on its way */
    double rate;
    int64_t base, base_true; /* clock = base + (true - base_true) * rate */
    int64_t begun, wake;     /* own clock */
    int64_t stopped_until;   /* true time */
    int64_t flight_until;    /* true time: a call of the leader may act */
    bool clock_stopped, dead, leaving;
};

struct world {
    uint64_t random;
    struct server server;
    struct candidate candidates[CANDIDATES];
    unsigned n, incarnations;
    int64_t now;
    bool calm; /* nothing goes wrong */
    bool slow; /* each call takes as long as it may */
    unsigned leaders, deletions, releases, crashes, lates;
    int64_t led_ms;
    int last_leader;
};

static uint64_t draw(struct world *w, uint64_t n)
{
    w->random += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = w->random;
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % n;
}

static bool chance(struct world *w, uint64_t one_in)
{
    return !w->calm && draw(w, one_in) == 0;
}

static int64_t clock_of(const struct world *w, const struct candidate *c)
{
    if (c->clock_stopped)
        return c->base;
    return c->base + (int64_t)((double)(w->now - c->base_true) * c->rate);
}

static void rebase(const struct world *w, struct candidate *c)
{
    c->base = clock_of(w, c);
    c->base_true = w->now;
}

static void start(struct world *w, struct candidate *c)
{
    (void)snprintf(c->identity, sizeof c->identity, "c%u", ++w->incarnations);
    c->config = (struct election_config){c->identity, ELECTION_DURATION_MS,
                                         ELECTION_RENEW_MS,
                                         ELECTION_DEADLINE_MS};
    c->rate = 0.8 + (double)draw(w, 401) / 1000;
    c->base = (int64_t)draw(w, 1000000);
    c->base_true = w->now;
    c->clock_stopped = c->dead = c->leaving = false;
    c->stopped_until = 0;
    c->wake = c->base;
    if (c->request.pending && c->request.write)
        c->late = c->request; /* what a dead process sent still arrives */
    c->request.pending = false;
    election_init(&c->election, &c->config);
}

static void send(struct world *w, struct candidate *c)
{
    struct request *rq = &c->request;
    if (rq->write && c->clock_stopped) {
        rebase(w, c);
        c->clock_stopped = false;
    }
    int64_t there = 1 + (int64_t)draw(w, 40), back = 1 + (int64_t)draw(w, 40);
    if (chance(w, 20))
        there += (int64_t)draw(w, 20000);
    if (w->slow) {
        there = 1;
        back = TIMEOUT_MS - 3;
    }
    rq->pending = true;
    rq->answered = false;
    rq->arrives = w->now + there;
    rq->answers = chance(w, 20) ? INT64_MAX : rq->arrives + back;
    c->begun = clock_of(w, c);
}

static void arrive(struct world *w, struct request *rq)
{
    struct server *s = &w->server;
    rq->answered = true;
    if (rq->write) {
        rq->ok = server_write(s, &rq->lease, &rq->reply);
    } else {
        rq->reply = s->lease;
        rq->reply_exists = s->exists;
    }
}

static void send_write(struct world *w, struct candidate *c,
                       enum election_move move)
{
    c->request.write = true;
    election_lease(&c->election, move, NOW, &c->request.lease);
    send(w, c);
}

static void send_look(struct world *w, struct candidate *c)
{
    c->request.write = false;
    send(w, c);
}

static void finish(struct world *w, struct candidate *c)
{
    struct request *rq = &c->request;
    struct election *e = &c->election;
    int64_t clock = clock_of(w, c);
    rq->pending = false;
    c->wake = clock;
    if (rq->write) {
        if (!rq->ok) {
            send_look(w, c);
            return;
        }
        election_written(e, &rq->reply, c->begun);
    } else {
        election_observe(e, rq->reply_exists ? &rq->reply : NULL, clock);
        enum election_move move = election_next(e, clock);
        if (move != ELECTION_WAIT && !c->leaving) {
            send_write(w, c, move);
            return;
        }
    }
    c->wake = clock + election_wait_ms(e, clock);
}

static void give_up(struct world *w, struct candidate *c)
{
    int64_t clock = clock_of(w, c);
    if (c->request.write && !c->request.answered) {
        c->late = c->request;
        w->lates++;
    }
    c->request.pending = false;
    c->wake = clock + election_wait_ms(&c->election, clock);
}

/* A clean end: it acts no more; once no call is on its way, the lease is given
 * back, and then a new process begins. */
static void leave(struct world *w, struct candidate *c)
{
    struct kube_lease lease, written;
    if (w->now < c->flight_until || c->request.pending)
        return;
    if (election_next(&c->election, clock_of(w, c)) == ELECTION_RELEASE) {
        election_lease(&c->election, ELECTION_RELEASE, NOW, &lease);
        w->releases += server_write(&w->server, &lease, &written);
    }
    start(w, c);
}

static void run_one(struct world *w, struct candidate *c)
{
    struct request *rq = &c->request;
    int64_t clock;
    if (c->late.pending && w->now >= c->late.arrives) {
        arrive(w, &c->late);
        c->late.pending = false;
    }
    if (rq->pending && !rq->answered && w->now >= rq->arrives)
        arrive(w, rq);
    if (c->dead || w->now < c->stopped_until)
        return;
    if (rq->pending && rq->answered && w->now >= rq->answers)
        finish(w, c);
    else if (rq->pending && clock_of(w, c) >= c->begun + TIMEOUT_MS)
        give_up(w, c);
    else if (c->leaving) {
        leave(w, c);
    } else if (!rq->pending && clock_of(w, c) >= c->wake) {
        clock = clock_of(w, c);
        if (election_looks(&c->election, clock))
            send_look(w, c);
        else
            send_write(w, c, election_next(&c->election, clock));
    }
}

static void go_wrong(struct world *w)
{
    struct candidate *c = &w->candidates[draw(w, w->n)];
    bool idle = strcmp(c->election.seen.holder, c->identity) != 0;
    if (chance(w, 800))
        c->stopped_until = w->now + (int64_t)draw(w, 20000);
    if (chance(w, 1500) && !c->dead) {
        c->dead = true;
        w->crashes++;
    }
    if (c->dead && chance(w, 20))
        start(w, c);
    if (chance(w, 300) && (c->clock_stopped || idle) &&
        !(c->request.pending && c->request.write)) {
        rebase(w, c);
        c->clock_stopped = !c->clock_stopped;
    }
    if (chance(w, 600) && !c->dead && !c->leaving) {
        c->leaving = true;
        election_resign(&c->election, clock_of(w, c));
    }
    if (chance(w, 4000) && w->server.exists) {
        w->server.exists = false;
        w->deletions++;
    }
    if (chance(w, 300) && w->server.exists) /* somebody sets a label */
        (void)snprintf(w->server.lease.resource_version, 64, "%u",
                       ++w->server.version);
}

/* Everybody who may act now, or whose call may still act. */
static void check(struct world *w, uint64_t seed, int64_t step_ms)
{
    int active = -1;
    for (unsigned i = 0; i < w->n; i++) {
        struct candidate *c = &w->candidates[i];
        bool runs = !c->dead && w->now >= c->stopped_until;
        int64_t clock = clock_of(w, c);
        if (runs && election_holds(&c->election, clock, CALL_MS)) {
            int64_t until = w->now + (int64_t)(CALL_MS / c->rate);
            c->flight_until = until > c->flight_until ? until : c->flight_until;
        }
        if (!(runs && election_holds(&c->election, clock, 0)) &&
            w->now >= c->flight_until)
            continue;
        cr_assert_eq(active, -1, "seed %llu: %d and %u at %lld",
                     (unsigned long long)seed, active, i, (long long)w->now);
        active = (int)i;
    }
    if (active < 0)
        return;
    w->led_ms += step_ms;
    if (active != w->last_leader)
        w->leaders++;
    w->last_leader = active;
}

static void run(struct world *w, uint64_t seed, unsigned n, unsigned steps)
{
    w->random = seed;
    w->n = n;
    w->last_leader = -1;
    for (unsigned i = 0; i < n; i++)
        start(w, &w->candidates[i]);
    for (unsigned step = 0; step < steps; step++) {
        int64_t ms = 1 + (int64_t)draw(w, 60);
        w->now += ms;
        go_wrong(w);
        for (unsigned i = 0; i < n; i++)
            run_one(w, &w->candidates[(i + step) % n]);
        check(w, seed, ms);
    }
}

static void expect_never_two(unsigned n)
{
    struct world w = {0};
    run(&w, 1000 + n, n, 1000000);
    /* it is no proof when nobody leads, or nothing happens */
    int64_t led = 100 * w.led_ms / w.now;
    cr_log_info("%u: led %lld %% by %u, %u deletions, %u releases, %u crashes, "
                "%u late writes",
                n, (long long)led, w.leaders, w.deletions, w.releases,
                w.crashes, w.lates);
    cr_expect_gt(led, 20);
    cr_expect_gt(w.leaders, 100u);
    cr_expect_gt(w.deletions, 100u);
    cr_expect_gt(w.releases, 100u);
    cr_expect_gt(w.crashes, 100u);
    cr_expect_gt(w.lates, 100u);
}

Test(election, never_two_of_two)
{
    expect_never_two(2);
}

Test(election, never_two_of_three)
{
    expect_never_two(3);
}

/* The longest that nobody holds after the leader has died; all clocks are
 * right. */
static int64_t longest_gap(bool slow)
{
    int64_t longest = 0;
    for (uint64_t seed = 1; seed <= ROUNDS_OF(300); seed++) {
        struct world w = {.calm = true, .slow = slow, .random = seed, .n = 3};
        int64_t lead_ms = 0, died_ms = 0, led_ms = 0;
        for (unsigned i = 0; i < 3; i++) {
            start(&w, &w.candidates[i]);
            w.candidates[i].rate = 1;
        }
        for (w.now = 1; w.now < 60000 && !led_ms; w.now++) {
            for (unsigned i = 0; i < 3; i++) {
                struct candidate *c = &w.candidates[i];
                run_one(&w, c);
                if (c->dead ||
                    !election_holds(&c->election, clock_of(&w, c), 0))
                    continue;
                lead_ms = lead_ms ? lead_ms : w.now;
                led_ms = died_ms ? w.now : 0;
                if (!died_ms && w.now > 20000 + (int64_t)seed * 10) {
                    c->dead = true;
                    died_ms = w.now;
                }
            }
        }
        cr_assert(lead_ms > 0, "seed %d", (int)seed);
        /* one that is made anew is held a DURATION after its first renewal */
        cr_assert(slow || lead_ms < ELECTION_DURATION_MS + 2000,
                  "seed %d: %d ms", (int)seed, (int)lead_ms);
        cr_assert(led_ms > died_ms && died_ms > 0, "seed %d", (int)seed);
        longest = led_ms - died_ms > longest ? led_ms - died_ms : longest;
    }
    return longest;
}

/* What the comment on ELECTION_TAKEOVER_MS adds up. */
Test(election, a_dead_leader_is_followed_in_time)
{
    int64_t looks_ms = ELECTION_RENEW_MS / 2;
    int64_t quick_ms = longest_gap(false), slow_ms = longest_gap(true);
    cr_log_info("nobody leads for %lld ms, with slow calls %lld ms",
                (long long)quick_ms, (long long)slow_ms);
    cr_expect_leq(quick_ms, looks_ms + ELECTION_DURATION_MS + 3 * 80);
    cr_expect_leq(slow_ms,
                  looks_ms + ELECTION_DURATION_MS + 2 * ELECTION_CALL_MS);
    /* room for what a new leader lists, and for a probe */
    cr_expect_leq(slow_ms + 2 * ELECTION_CALL_MS, ELECTION_TAKEOVER_MS);
    cr_expect_gt(slow_ms, quick_ms);
}

/* Of two clocks that are wrong by a fifth, the one slow, the other fast. */
Test(election, a_holder_stops_before_another_may_take_it)
{
    cr_expect_leq(ELECTION_DEADLINE_MS / 0.8, ELECTION_DURATION_MS / 1.2);
    cr_expect_gt(ELECTION_DEADLINE_MS - CALL_MS, ELECTION_RENEW_MS,
                 "a leader that renews in time may always begin a call");
}
