/* Events of pods, against an API server of three lines. */
#include "extender/leader/events.h"

#include <criterion/criterion.h>
#include <stdatomic.h>
#include <string.h>

#include "lib/http/httpd.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"

enum {
    NOW = 1000000,
    STEP_MS = 1000,
    CALM_MS = 600000,
    A_DAY_MS = 24 * 3600 * 1000,
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all */
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static bool leads, exists, forbidden;
static bool fails; /* the next that is no poke is carried out, perhaps */
static char names[2][512]; /* of the last two calls that are no pokes */
static int64_t lease_ms;   /* of its lease are left */
static unsigned n_posts, n_patches, n_pokes, n_asked;
static unsigned urgent_at; /* the post in which it says "urgent"; 0: none */
static char last[4096];    /* the body of the last call */

static struct httpd *server;
static struct kube_config config;
static char url[64];
static struct events *events;
static int64_t now_ms;

static void note(unsigned *n)
{
    (*n)++;
    pthread_cond_broadcast(&wake);
}

/* Of the Event that a call is about. */
static void note_name(const char *text)
{
    const char *name = strstr(text, "pod-");
    memcpy(names[0], names[1], sizeof names[0]);
    (void)snprintf(names[1], sizeof names[1], "%.*s", (int)strcspn(name, "\""),
                   name);
}

static void on_call(struct httpd_request *rq, void *ctx)
{
    size_t size;
    const char *body = httpd_body(rq, &size);
    (void)ctx;
    pthread_mutex_lock(&lock);
    bool poke = memmem(body, size, "poke", 4);
    if (!poke) {
        (void)snprintf(last, sizeof last, "%.*s", (int)size, body);
        note_name(httpd_method(rq) == HTTPD_POST ? strstr(last, "\"name\":\"")
                                                 : httpd_path(rq));
    }
    if (memmem(body, size, "urgent", 6))
        urgent_at = n_posts + 1;
    bool there = exists && httpd_method(rq) == HTTPD_POST;
    bool lost = fails && !poke;
    httpd_status(rq, forbidden ? 403 : lost ? 500 : there ? 409 : 201);
    fails &= !lost;
    str_add(httpd_reply(rq), there ? "{\"kind\":\"Status\",\"reason\":"
                                     "\"AlreadyExists\",\"code\":409}"
                                   : "{}");
    note(poke                             ? &n_pokes
         : httpd_method(rq) == HTTPD_POST ? &n_posts
                                          : &n_patches);
    pthread_mutex_unlock(&lock);
}

static bool may_write(void *ctx, int64_t call_ms)
{
    (void)ctx;
    pthread_mutex_lock(&lock);
    bool may = leads && call_ms <= lease_ms;
    if (call_ms > 0) /* else it is the second question of one look */
        note(&n_asked);
    pthread_mutex_unlock(&lock);
    return may;
}

static void post(const char *uid, enum events_reason reason, const char *text)
{
    struct demand d = {.namespace = "ns"};
    (void)snprintf(d.name, sizeof d.name, "pod-%s", uid);
    (void)snprintf(d.uid, sizeof d.uid, "%s", uid);
    events_post(events, &d, reason, text);
}

/* Time goes on, and whoever waits for it looks. */
static void step(void)
{
    clock_set_fake(now_ms += STEP_MS);
    post("poke", EVENTS_BUDDY_MADE, "poke");
}

static void wait_for(const unsigned *n, unsigned least)
{
    bool done = false;
    while (!done) {
        struct timespec soon;
        step();
        clock_gettime(CLOCK_REALTIME, &soon);
        soon.tv_nsec += 20 * 1000000;
        soon.tv_sec += soon.tv_nsec / 1000000000;
        soon.tv_nsec %= 1000000000;
        pthread_mutex_lock(&lock);
        done = *n >= least ||
               (pthread_cond_timedwait(&wake, &lock, &soon) == 0 &&
                *n >= least);
        pthread_mutex_unlock(&lock);
    }
}

/* Until what was posted before, and was due within some minutes, was looked
 * at: another pod's comes after it. */
static void settle(void)
{
    static unsigned n;
    char uid[16];
    pthread_mutex_lock(&lock);
    unsigned asked = n_asked;
    pthread_mutex_unlock(&lock);
    now_ms += 5 * EVENTS_PAUSE_MS;
    (void)snprintf(uid, sizeof uid, "last-%u", n++);
    post(uid, EVENTS_BUDDY_FAILED, "poke");
    wait_for(&n_asked, asked + 4); /* some pokes, and all that is due */
}

static void start(void)
{
    static const struct httpd_route routes[] = {
        {HTTPD_POST | HTTPD_PATCH, "/::", on_call, 65536, "events"}};
    struct httpd_config c = {.name = "api",
                             .listen = "127.0.0.1:0",
                             .routes = routes,
                             .n_routes = 1,
                             .threads = 1,
                             /* time may jump while a call is answered */
                             .request_ms = A_DAY_MS,
                             .reply_ms = A_DAY_MS,
                             .idle_ms = A_DAY_MS};
    struct error err = {0};
    log_set_level(LOG_ERROR + 1);
    clock_set_fake(now_ms = NOW);
    cr_assert_eq(httpd_start(&c, &server, &err), 0, "%s", err.text);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u", httpd_port(server));
    config.server = url;
    leads = true;
    lease_ms = A_DAY_MS;
    cr_assert_eq(events_start(&(struct events_config){.kube = &config,
                                                      .reporter = "r",
                                                      .may_write = may_write,
                                                      /* calls are real */
                                                      .call_ms = CALM_MS},
                              &events, &err),
                 0, "%s", err.text);
}

static void stop(void)
{
    events_stop(events);
    httpd_stop(server);
    clock_set_fake(-1);
    clock_set_wall_ahead(0);
}

TestSuite(events, .init = start, .fini = stop, .timeout = 60);

Test(events, an_unknown_key_is_told_once_in_the_same_words)
{
    post("a", EVENTS_UNKNOWN_KEY, "one");
    wait_for(&n_posts, 1);
    cr_expect(strstr(last, "\"type\":\"Warning\",\"reason\":\"UnknownKey\""),
              "%s", last);
    cr_expect(strstr(last, "\"count\":1,"), "%s", last);
    post("a", EVENTS_UNKNOWN_KEY, "one");
    settle();
    cr_expect_eq(n_posts, 1);
    cr_expect_eq(n_patches, 0);
    post("a", EVENTS_UNKNOWN_KEY, "two");
    wait_for(&n_posts, 2);
    cr_expect(strstr(last, "\"message\":\"two\""), "%s", last);
    cr_expect_eq(n_patches, 0);
}

Test(events, what_another_replica_has_told_is_told)
{
    exists = true;
    post("a", EVENTS_UNKNOWN_KEY, "one");
    wait_for(&n_posts, 1);
    settle();
    cr_expect_eq(n_posts, 1);
}

Test(events, who_does_not_lead_keeps_it_until_it_does)
{
    leads = false;
    post("a", EVENTS_UNKNOWN_KEY, "one");
    settle();
    cr_expect_eq(n_posts, 0);
    pthread_mutex_lock(&lock);
    leads = true;
    pthread_mutex_unlock(&lock);
    wait_for(&n_posts, 1);
}

/* Of most reasons each Event is told by one leader alone: it waits for its
 * lease. */
Test(events, a_lease_that_is_renewed_late_loses_nothing)
{
    lease_ms = 1000;
    post("a", EVENTS_CARD_LOST, "one");
    wait_for(&n_asked, 8);
    cr_expect_eq(n_posts, 0);
    pthread_mutex_lock(&lock);
    lease_ms = A_DAY_MS;
    pthread_mutex_unlock(&lock);
    wait_for(&n_posts, 1);
    cr_expect(strstr(last, "\"reason\":\"CardLost\""), "%s", last);
    cr_expect(strstr(last, "\"count\":1,"), "%s", last);
}

/* One whose answer was lost is there, perhaps: it is no second one. */
Test(events, what_was_not_answered_is_told_once)
{
    fails = true;
    post("a", EVENTS_CARD_LOST, "one");
    wait_for(&n_posts, 1);
    clock_set_wall_ahead(60);
    wait_for(&n_posts, 2);
    cr_expect_str_eq(names[1], names[0]);
    settle();
    cr_expect_eq(n_posts, 2);
    cr_expect_eq(n_patches, 0);
}

Test(events, what_is_said_meanwhile_is_added_to_one_that_is_there)
{
    fails = exists = true;
    post("a", EVENTS_CARD_LOST, "one");
    wait_for(&n_posts, 1);
    clock_set_wall_ahead(60);
    post("a", EVENTS_CARD_LOST, "two");
    wait_for(&n_patches, 1);
    cr_expect_str_eq(names[1], names[0]);
    cr_expect(strstr(last, "\"count\":2,"), "%s", last);
    cr_expect(strstr(last, "\"message\":\"two\""), "%s", last);
    settle();
    cr_expect_eq(n_posts, 2);
    cr_expect_eq(n_patches, 1);
}

Test(events, who_does_not_lead_leaves_the_rest_to_the_leader)
{
    leads = false;
    post("a", EVENTS_CARD_LOST, "one");
    settle();
    pthread_mutex_lock(&lock);
    leads = true;
    pthread_mutex_unlock(&lock);
    settle();
    cr_expect_eq(n_posts, 0);
}

/* Each pod of a template with a misspelt key has one. */
Test(events, unknown_keys_keep_no_other_warning_waiting)
{
    for (unsigned i = 0; i < 40; i++) {
        char uid[16];
        (void)snprintf(uid, sizeof uid, "odd-%u", i);
        post(uid, EVENTS_UNKNOWN_KEY, "one");
    }
    post("a", EVENTS_UNALIGNED, "urgent");
    wait_for(&n_posts, 10);
    cr_expect(urgent_at == 1 || urgent_at == 2, "%u", urgent_at);
    wait_for(&n_posts, 41);
}

Test(events, what_may_not_be_told_is_tried_less_and_less)
{
    forbidden = true;
    int64_t begun_ms = now_ms;
    post("a", EVENTS_UNKNOWN_KEY, "one");
    wait_for(&n_posts, 4);
    cr_expect_geq(now_ms - begun_ms, 5000 + 10000 + 20000);
}
