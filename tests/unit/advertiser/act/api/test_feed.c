/* The feed against a server that answers what a test says, with an actuator
 * that has no cards. */
#include "advertiser/act/api/feed.h"

#include <criterion/criterion.h>
#include <unistd.h>

#include "advertiser/act/api/feed_private.h"
#include "lib/base/mem.h"
#include "lib/http/httpd.h"
#include "tests/lib/card/fakeactuator.inc"

/* --- usage ----------------------------------------------------------------- */

/* Of the card, and of no pod. */
static _Atomic uint64_t used_version;

bool usage_find(struct usage *u, const char *place, const char *uid,
                struct usage_now *ret_now)
{
    (void)u;
    *ret_now = (struct usage_now){
        .cpu_millicores = 250, .memory_mib = 7, .version = used_version};
    ret_now->known = used_version && !uid && strcmp(place, "host") != 0;
    return ret_now->known;
}

uint64_t usage_version(struct usage *u)
{
    (void)u;
    return used_version;
}

/* --- the extender --------------------------------------------------------- */

static struct {
    pthread_mutex_t lock;
    char *answer; /* to the next question of a version other than `version` */
    unsigned status;
    uint64_t version;
    struct httpd_request *parked; /* a question without news */
    unsigned n_asked, n_told, tell_status;
    struct str asked, told; /* the last path; all statuses, a line each */
    struct httpd *httpd;
    struct feed *feed;
} ext = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .status = 200,
    .tell_status = 204,
    .asked = {.max = 4096},
    .told = {.max = 4 << 20},
};

static void reply_locked(struct httpd_request *rq)
{
    if (ext.status == 200)
        str_add(httpd_reply(rq), ext.answer);
    else
        httpd_fail(rq, ext.status, "it is not well");
}

static void on_pods(struct httpd_request *rq, void *ctx)
{
    const char *version = httpd_query(rq, "version");
    (void)ctx;
    pthread_mutex_lock(&ext.lock);
    ext.n_asked++;
    str_reset(&ext.asked);
    str_addf(&ext.asked, "%s?%s", httpd_path(rq), version);
    if (httpd_query(rq, "from"))
        str_addf(&ext.asked, "&from=%s", httpd_query(rq, "from"));
    if (httpd_query(rq, "kept"))
        str_addf(&ext.asked, "&kept=%s", httpd_query(rq, "kept"));
    if (ext.status == 200 && strtoull(version, NULL, 10) == ext.version &&
        strcmp(httpd_query(rq, "wait"), "0") != 0) {
        httpd_suspend(rq);
        ext.parked = rq;
    } else {
        reply_locked(rq);
    }
    pthread_mutex_unlock(&ext.lock);
}

static void on_status(struct httpd_request *rq, void *ctx)
{
    size_t size;
    const char *body = httpd_body(rq, &size);
    (void)ctx;
    pthread_mutex_lock(&ext.lock);
    ext.n_told++;
    if (ext.tell_status == 204) {
        str_addf(&ext.told, "%s %s\n", httpd_path(rq), body);
        httpd_status(rq, 204);
    } else {
        httpd_fail(rq, ext.tell_status, "no");
    }
    pthread_mutex_unlock(&ext.lock);
}

/* The extender says something new from now on. */
static void say(uint64_t version, unsigned status, const char *answer)
{
    pthread_mutex_lock(&ext.lock);
    ext.version = version;
    ext.status = status;
    free(ext.answer);
    ext.answer = xstrdup(answer);
    if (ext.parked) {
        reply_locked(ext.parked);
        httpd_resume(ext.parked);
        ext.parked = NULL;
    }
    pthread_mutex_unlock(&ext.lock);
}

#define P(uid, name, place, more)                                   \
    "{\"uid\":\"" uid "\",\"namespace\":\"ns\",\"name\":\"" name    \
    "\",\"place\":\"" place "\",\"env\":{\"BIGA_RANK\":\"0\"}" more \
    ",\"spec\":{}}"
#define CARD "card-0000-17-00"
#define ANSWER(version, items) "{\"version\":" version ",\"items\":[" items "]}"

static void start_extender(void)
{
    static const struct httpd_route routes[] = {
        {HTTPD_GET, "/v1/nodes/:/pods", on_pods, 0, "pods"},
        {HTTPD_POST, "/v1/nodes/:/status", on_status, 4 << 20, "status"},
    };
    const struct httpd_config config = {.listen = "127.0.0.1:0",
                                        .routes = routes,
                                        .n_routes = ARRAY_LEN(routes)};
    struct error err;
    cr_assert_eq(httpd_start(&config, &ext.httpd, &err), 0, "%s", err.text);
}

static void poke(void *ctx)
{
    (void)ctx;
    feed_poke(ext.feed);
}

enum {
    GAP_MS = 20,
    HANGS_MS = 120000, /* what is waited for will not come any more */
};

static char base[64];

static void start_feed(void)
{
    struct error err;
    struct actuator *a = &fake;
    (void)snprintf(base, sizeof base, "http://127.0.0.1:%u",
                   httpd_port(ext.httpd));
    const struct feed_config config = {
        .http = {.base = base, .timeout_ms = HANGS_MS},
        .node = "h1",
        .boot_id = "b1",
        .backoff_min_ms = 10,
        .backoff_max_ms = 50,
        .gap_ms = GAP_MS,
        .again_ms = 50,
    };
    cr_assert_eq(feed_start(a, &config, &ext.feed, &err), 0, "%s", err.text);
}

static void start(void)
{
    struct error err;
    struct actuator *a;
    const struct actuator_config config = {.changed = poke};
    (void)actuator_create(&config, &a, &err);
    start_extender();
    say(1, 200, ANSWER("1", ""));
}

static void stop(void)
{
    struct feed *f = ext.feed;
    fake.changed = NULL;
    pthread_mutex_lock(&ext.lock);
    if (ext.parked) {
        httpd_fail(ext.parked, 503, "over");
        httpd_resume(ext.parked);
        ext.parked = NULL;
    }
    ext.status = 503;
    pthread_mutex_unlock(&ext.lock);
    feed_stop(f);
    httpd_stop(ext.httpd);
    fake_fini();
    str_fini(&ext.asked);
    str_fini(&ext.told);
    free(ext.answer);
}

TestSuite(feed, .init = start, .fini = stop, .timeout = 180);

/* --- until ---------------------------------------------------------------- */

static bool told(const char *text)
{
    pthread_mutex_lock(&ext.lock);
    bool there = strstr(str_text(&ext.told), text) != NULL;
    pthread_mutex_unlock(&ext.lock);
    return there;
}

static bool is_stopping(const char *uid)
{
    bool stopping;
    return fake_has(uid, &stopping) && stopping;
}

static bool is_there(const char *uid)
{
    return fake_has(uid, NULL);
}

static bool is_forgotten(const char *uid)
{
    return !fake_has(uid, NULL);
}

static bool asked_more_than(const char *number)
{
    pthread_mutex_lock(&ext.lock);
    bool more = ext.n_asked > (unsigned)strtoul(number, NULL, 10);
    pthread_mutex_unlock(&ext.lock);
    return more;
}

/* Its question is one for news, and there are none. */
static bool waits(const char *ignored)
{
    (void)ignored;
    pthread_mutex_lock(&ext.lock);
    bool parked = ext.parked != NULL;
    pthread_mutex_unlock(&ext.lock);
    return parked;
}

static void print_told(void)
{
    pthread_mutex_lock(&ext.lock);
    (void)fprintf(stderr, "told:\n%s\n", str_text(&ext.told));
    pthread_mutex_unlock(&ext.lock);
}

#define UNTIL(condition, arg)                        \
    do {                                             \
        int64_t due_ = clock_ms() + HANGS_MS;        \
        while (!condition(arg) && clock_ms() < due_) \
            (void)usleep(2000);                      \
        if (!condition(arg))                         \
            print_told();                            \
        cr_assert(condition(arg), "%s", arg);        \
    } while (0)

static unsigned look(const unsigned *value)
{
    pthread_mutex_lock(&ext.lock);
    unsigned now = *value;
    pthread_mutex_unlock(&ext.lock);
    return now;
}

static void until_asked_over(unsigned n)
{
    char text[16];
    (void)snprintf(text, sizeof text, "%u", n);
    UNTIL(asked_more_than, text);
}

static void until_asked_more(unsigned n)
{
    until_asked_over(look(&ext.n_asked) + n);
}

static void forget_told(void)
{
    pthread_mutex_lock(&ext.lock);
    str_reset(&ext.told);
    pthread_mutex_unlock(&ext.lock);
}

/* --- tests ---------------------------------------------------------------- */

Test(feed, pods_come_fare_and_go)
{
    say(7, 200, ANSWER("7", P("u1", "a", CARD, ",\"pairKey\":\"ns/j/0\"")));
    start_feed();
    UNTIL(is_there, "u1");
    cr_expect_str_eq(fake.pods[0].view.owner, FEED_OWNER);
    cr_expect_str_eq(fake.pods[0].view.pair_key, "ns/j/0");
    cr_expect_str_eq(fake.pods[0].env, "BIGA_RANK=0 ");
    UNTIL(told, "/v1/nodes/h1/status {\"boot\":\"b1\",\"pods\":[");
    UNTIL(told, "{\"uid\":\"u1\",\"state\":\"wanted\",\"ready\":false");
    UNTIL(told,
          "\"places\":[{\"name\":\"card-0000-17-00\",\"health\":\"ready\"");
    fake_set("u1", ACT_RUNNING, "");
    UNTIL(told, "\"state\":\"running\",\"ready\":true");
    say(8, 200, ANSWER("8", P("u1", "a", CARD, ",\"stop\":true,\"grace\":9")));
    UNTIL(is_stopping, "u1");
    cr_expect_eq(fake.pods[0].grace_s, 9);
    fake_set("u1", ACT_GONE, "");
    UNTIL(told, "\"state\":\"gone\"");
    cr_expect(is_there("u1"), "the extender knows it");
    say(9, 200, ANSWER("9", ""));
    UNTIL(is_forgotten, "u1");
}

Test(feed, whoever_is_not_in_a_whole_answer_ends)
{
    say(2, 200, ANSWER("2", P("u1", "a", CARD, "") "," P("u2", "b", CARD, "")));
    start_feed();
    UNTIL(is_there, "u2");
    say(3, 200, ANSWER("3", P("u2", "b", CARD, "")));
    UNTIL(is_stopping, "u1");
    cr_expect(!is_stopping("u2"));
}

/* None of these says that nothing is wanted. */
Test(feed, an_outage_ends_nothing)
{
    static const struct {
        unsigned status;
        const char *answer;
    } outages[] = {
        {503, ""},
        {404, ""},
        {403, ""},
        {200, ""},
        {200, "{}"},
        {200, "{\"version\":99}"},
        {200, "{\"items\":[]}"},
        {200, "{\"version\":99,\"items\":[{\"uid\":9}]}"},
        {200, "{\"version\":99,\"items\":["},
        {200, "<html>"},
    };
    say(2, 200, ANSWER("2", P("u1", "a", CARD, "")));
    start_feed();
    UNTIL(is_there, "u1");
    for (size_t i = 0; i < ARRAY_LEN(outages); i++) {
        say(99 + i, outages[i].status, outages[i].answer);
        until_asked_more(2);
        cr_expect(!is_stopping("u1"), "%s", outages[i].answer);
    }
    /* the same version again is no news, whatever else it says */
    say(200, 200, ANSWER("200", P("u1", "a", CARD, "")));
    UNTIL(waits, "");
    say(201, 200, ANSWER("200", ""));
    until_asked_more(2);
    cr_expect(!is_stopping("u1"));
    say(202, 200,
        ANSWER("202", P("u1", "a", CARD, "") "," P("u2", "b", CARD, "")));
    UNTIL(is_there, "u2");
    cr_expect(!is_stopping("u1"));
}

/* Up to then it shows what runs as wanted. */
Test(feed, an_extender_that_is_back_is_asked_within_ten_seconds)
{
    const struct feed_config config = {
        .http = {.base = base, .timeout_ms = 30000},
        .node = "h1",
        .boot_id = "b1"};
    struct feed *f;
    struct error err;
    int64_t first = 0, ms = 0;
    bool differ = false;
    (void)snprintf(base, sizeof base, "http://127.0.0.1:%u",
                   httpd_port(ext.httpd));
    cr_assert_eq(feed_start(&fake, &config, &f, &err), 0, "%s", err.text);
    ext.feed = f;
    struct backoff b = f->ask.backoff;
    for (int i = 0; i < 30; i++) {
        ms = backoff_fail(&b);
        cr_expect_leq(ms, 10000);
        if (i == 10)
            first = ms;
        differ |= i > 10 && ms != first;
    }
    cr_expect_geq(ms, 5000, "nor all the time");
    cr_expect(differ, "nodes come back together");
}

Test(feed, an_extender_that_restarts_is_asked_for_all)
{
    say(50, 200, ANSWER("50", P("u1", "a", CARD, "")));
    start_feed();
    UNTIL(told, "\"uid\":\"u1\"");
    unsigned short port = httpd_port(ext.httpd);
    (void)port;
    say(51, 503, "");
    until_asked_more(2);
    forget_told();
    /* the number is one that we knew, the content another */
    say(51, 200,
        "{\"version\":50,\"resend\":true,\"items\":[" P(
            "u1", "a", CARD, "") "," P("u2", "b", CARD, "") "]}");
    UNTIL(is_there, "u2");
    UNTIL(told, "{\"uid\":\"u1\",\"state\":\"wanted\"");
    UNTIL(told, "],\"whole\":true}");
}

/* An extender in doubt asks for everything until it has understood it. */
Test(feed, whoever_asks_for_all_without_news_is_told_all)
{
    static const char again[] = "{\"version\":2,\"resend\":true,\"items\":[" P(
        "u1", "a", CARD, "") "]}";
    say(2, 200, again);
    start_feed();
    UNTIL(is_there, "u1");
    until_asked_over(1); /* now it waits for news */
    UNTIL(told, "{\"uid\":\"u1\",\"state\":\"wanted\"");
    UNTIL(told, "],\"whole\":true}");
    for (int i = 0; i < 3; i++) {
        unsigned asked = look(&ext.n_asked);
        forget_told();
        say(2, 200, again);
        UNTIL(told, "{\"uid\":\"u1\",\"state\":\"wanted\"");
        UNTIL(told, "],\"whole\":true}");
        until_asked_over(asked);
    }
}

static bool asks(const char *text)
{
    pthread_mutex_lock(&ext.lock);
    bool asks = strstr(str_text(&ext.asked), text) != NULL;
    pthread_mutex_unlock(&ext.lock);
    return asks;
}

static bool is_not_kept(const char *uid)
{
    return !fake_is_kept(uid);
}

Test(feed, logs_are_kept_until_their_pods_are_deleted)
{
#define OVER P("u1", "a", CARD, ",\"stop\":true,\"keep\":true")
    say(1, 200, ANSWER("1", P("u1", "a", CARD, "") "," P("u2", "b", CARD, "")));
    start_feed();
    UNTIL(is_there, "u2");
    say(2, 200, ANSWER("2", OVER "," P("u2", "b", CARD, ",\"stop\":true")));
    UNTIL(fake_is_kept, "u1");
    UNTIL(is_stopping, "u2");
    cr_expect_not(fake_is_kept("u2"), "it was deleted");
    fake_set("u1", ACT_GONE, "");
    say(3, 200, ANSWER("3", ""));
    UNTIL(is_forgotten, "u1");
    cr_expect_not(asks("kept"), "an older extender would refuse it");
    cr_expect(fake_is_kept("u1"));
    say(4, 200, "{\"version\":4,\"items\":[],\"kept\":[]}");
    say(5, 200, "{\"version\":5,\"items\":[],\"kept\":[\"u1\"]}");
    UNTIL(asks, "pods?5&kept=u1");
    say(6, 200, "{\"version\":6,\"items\":[],\"kept\":[\"u1\"]}");
    UNTIL(asks, "pods?6&kept=u1");
    cr_expect(fake_is_kept("u1"));
    say(7, 200, "{\"version\":7,\"items\":[],\"kept\":[]}");
    UNTIL(is_not_kept, "u1");
}

static bool asks_from_u2(const char *ignored)
{
    (void)ignored;
    pthread_mutex_lock(&ext.lock);
    bool asks = strstr(str_text(&ext.asked), "&from=u2") != NULL;
    pthread_mutex_unlock(&ext.lock);
    return asks;
}

static bool asks_for_news(const char *why)
{
    (void)why;
    return !asks_from_u2("");
}

/* An answer had no room for what a pod runs with. */
Test(feed, what_comes_later_is_asked_for)
{
    const char *later = ",{\"uid\":\"u2\",\"namespace\":\"ns\",\"name\":\"b\","
                        "\"place\":\"" CARD "\",\"later\":true}],\"next\":"
                        "\"u2\"}";
    cleanup_free char *first = xasprintf("{\"version\":2,\"items\":[%s%s",
                                         P("u1", "a", CARD, ""), later);
    say(2, 200, first);
    start_feed();
    UNTIL(asks_from_u2, "");
    cr_expect(is_there("u1") && !is_there("u2"));
    cr_expect(!told("\"uid\":\"u2\""), "nothing is wrong with it");
    say(2, 200,
        "{\"version\":2,\"items\":[{\"uid\":\"u1\",\"namespace\":\"ns\","
        "\"name\":\"a\",\"place\":\"" CARD
        "\",\"later\":true}," P("u2", "b", CARD, "") "],\"next\":\"u1\"}");
    UNTIL(is_there, "u2");
    cr_expect(!is_stopping("u1"));
    UNTIL(asks_for_news, "it lacks nothing");
}

/* The extender has no answer that would have it: its next start may. */
Test(feed, what_comes_from_no_answer_is_waited_for)
{
    say(2, 200,
        ANSWER("2", P("u1", "a", CARD, "") ",{\"uid\":\"u2\",\"namespace\":"
                                           "\"ns\",\"name\":\"b\",\"place\":"
                                           "\"" CARD "\",\"later\":true}"));
    start_feed();
    UNTIL(is_there, "u1");
    UNTIL(waits, "");
    cr_expect(!is_there("u2"));
    say(3, 200, ANSWER("3", P("u1", "a", CARD, "") "," P("u2", "b", CARD, "")));
    UNTIL(is_there, "u2");
    cr_expect(!is_stopping("u1"));
}

Test(feed, what_cannot_be_is_told)
{
    say(2, 200,
        ANSWER("2", P("u1", "a", "card-9",
                      "") "," P("u2", "b", CARD,
                                ",\"stop\":true") "," P("u3", "c", CARD, "")));
    start_feed();
    UNTIL(told, "{\"uid\":\"u1\",\"state\":\"failed\",\"ready\":false,"
                "\"reason\":\"NoSuchCard\",\"message\":\"there is no place "
                "card-9\"");
    UNTIL(told, "{\"uid\":\"u2\",\"state\":\"gone\"");
    UNTIL(is_there, "u3");
    /* it is tried again: the card comes */
    pthread_mutex_lock(&fake.lock);
    fake_place("card-9", ACT_READY);
    pthread_mutex_unlock(&fake.lock);
    UNTIL(is_there, "u1");
    UNTIL(told, "{\"uid\":\"u1\",\"state\":\"wanted\"");
}

/* One pod that cannot be read is that pod's trouble. */
/* The node's own record is lost, and the pod may run on. */
Test(feed, what_is_left_is_not_gone)
{
    (void)snprintf(fake.left, sizeof fake.left, "u1");
    say(2, 200,
        ANSWER("2", P("u1", "a", CARD, ",\"stop\":true") "," P(
                        "u2", "b", CARD, ",\"stop\":true")));
    start_feed();
    UNTIL(told, "{\"uid\":\"u2\",\"state\":\"gone\"");
    UNTIL(told, "{\"uid\":\"u1\",\"state\":\"stopping\",\"ready\":false,"
                "\"reason\":\"LeftBehind\"");
    cr_expect_not(told("{\"uid\":\"u1\",\"state\":\"gone\""));
    pthread_mutex_lock(&fake.lock);
    fake.left[0] = '\0';
    pthread_mutex_unlock(&fake.lock);
    UNTIL(told, "{\"uid\":\"u1\",\"state\":\"gone\"");
}

static bool is_spared(const char *uids)
{
    pthread_mutex_lock(&fake.lock);
    bool spared = fake.n_told > 0 && strcmp(fake.spared, uids) == 0;
    pthread_mutex_unlock(&fake.lock);
    return spared;
}

Test(feed, what_could_not_be_written_down_is_somebodys)
{
    say(1, 503, "");
    start_feed();
    until_asked_more(3);
    cr_expect_eq(fake.n_told, 0, "nobody has said what is wanted");
    pthread_mutex_lock(&fake.lock);
    fake.want_result = -EBUSY;
    pthread_mutex_unlock(&fake.lock);
    say(2, 200,
        ANSWER("2", P("u1", "a", CARD, "") "," P("u2", "b", CARD,
                                                 ",\"stop\":true")));
    UNTIL(is_spared, "u1 ");
    pthread_mutex_lock(&fake.lock);
    fake.want_result = 0;
    pthread_mutex_unlock(&fake.lock);
    UNTIL(is_spared, "");
    UNTIL(is_there, "u1");
}

static void refuse_with(int result)
{
    pthread_mutex_lock(&fake.lock);
    fake.want_result = result;
    pthread_mutex_unlock(&fake.lock);
}

/* It was begun when more was allowed, and its row is lost: it runs on. */
Test(feed, what_would_be_refused_now_is_somebodys)
{
    refuse_with(-EPERM);
    say(2, 200, ANSWER("2", P("u1", "a", CARD, "")));
    start_feed();
    UNTIL(is_spared, "u1 ");
    refuse_with(-EINVAL);
    say(3, 200, ANSWER("3", P("u2", "b", CARD, "")));
    UNTIL(is_spared, "u2 ");
    say(4, 200, ANSWER("4", P("u3", "c", CARD, ",\"grace\":-7")));
    UNTIL(is_spared, "u3 ");
    say(5, 200, ANSWER("5", P("u3", "c", CARD, ",\"stop\":true")));
    UNTIL(is_spared, "");
}

Test(feed, a_broken_item_hurts_no_other)
{
    say(2, 200, ANSWER("2", P("u1", "a", CARD, "") "," P("u2", "b", CARD, "")));
    start_feed();
    UNTIL(is_there, "u2");
    say(3, 200,
        ANSWER(
            "3",
            P("u1", "a", CARD, ",\"grace\":-7") "," P(
                "u2", "b", CARD,
                ",\"grace\":-7,\"stop\":true") "," P("u3", "c", CARD,
                                                     ",\"grace\":-7") "," P("u"
                                                                            "4",
                                                                            "d",
                                                                            CARD,
                                                                            "")));
    UNTIL(is_there, "u4");
    UNTIL(is_stopping, "u2");
    UNTIL(told, "{\"uid\":\"u3\",\"state\":\"failed\",\"ready\":false,"
                "\"reason\":\"SpecRefused\",\"message\":\"items[2].grace: "
                "is -7");
    cr_expect(!is_stopping("u1"), "it runs");
    cr_expect(!told("\"uid\":\"u1\",\"state\":\"failed\""));
    cr_expect(!is_there("u3"));
}

Test(feed, what_is_told_is_told_until_it_is_heard)
{
    say(2, 200, ANSWER("2", P("u1", "a", CARD, "")));
    ext.tell_status = 500;
    start_feed();
    UNTIL(is_there, "u1");
    fake_set("u1", ACT_FAILED, "ImageMissing");
    while (look(&ext.n_told) < 3)
        (void)usleep(2000);
    pthread_mutex_lock(&ext.lock);
    ext.tell_status = 204;
    pthread_mutex_unlock(&ext.lock);
    UNTIL(told, "\"state\":\"failed\",\"ready\":false,"
                "\"reason\":\"ImageMissing\"");
    cr_expect(told("\"ran\":false,\"containers\""));
}

Test(feed, health_is_told_and_others_pods_are_not)
{
    struct error err;
    const struct act_pod pod = {.namespace = "ns",
                                .name = "x",
                                .uid = "foreign",
                                .place = "host",
                                .pair_key = "",
                                .spec = "{}",
                                .spec_size = 2,
                                .owner = "socket"};
    start_feed();
    UNTIL(told, "\"places\"");
    cr_assert_eq(actuator_want(&fake, &pod, &err), 0);
    cr_assert_eq(actuator_drain(&fake, CARD, true, &err), 0);
    UNTIL(told, "{\"name\":\"card-0000-17-00\",\"health\":\"drained\"");
    unsigned asked = look(&ext.n_asked);
    say(5, 200, ANSWER("5", ""));
    until_asked_over(asked);
    cr_expect(!told("foreign"));
    cr_expect(!is_stopping("foreign"));
}

Test(feed, what_is_used_is_told_again_although_it_is_the_same)
{
    static const char uses[] = "\"usage\":{\"cpuMillicores\":250";
    start_feed();
    UNTIL(told, "\"places\"");
    cr_expect_not(told(uses));
    for (uint64_t version = 1; version < 4; version++) {
        forget_told();
        used_version = version;
        feed_poke(ext.feed);
        UNTIL(told, uses);
    }
}

Test(feed, many_changes_are_few_posts)
{
    say(2, 200, ANSWER("2", P("u1", "a", CARD, "")));
    start_feed();
    UNTIL(told, "\"uid\":\"u1\"");
    unsigned before = look(&ext.n_told);
    int64_t began = clock_ms();
    for (int i = 0; i < 1000; i++)
        fake_set("u1", i % 2 ? ACT_RUNNING : ACT_CREATING, "");
    fake_set("u1", ACT_FAILED, "End");
    UNTIL(told, "\"reason\":\"End\"");
    unsigned told = look(&ext.n_told) - before;
    int64_t took = clock_ms() - began;
    cr_expect_leq(told, took / GAP_MS + 4, "%u in %d ms", told, (int)took);
}

static bool is_open(const char *question)
{
    pthread_mutex_lock(&ext.lock);
    bool open = ext.parked && strstr(str_text(&ext.asked), question);
    pthread_mutex_unlock(&ext.lock);
    return open;
}

/* Also while a question is open at an extender that does not answer: it would
 * be for more than HANGS_MS.  libcurl asks once a second whether to go on. */
Test(feed, a_stop_is_quick, .timeout = HANGS_MS / 1000)
{
    start_feed();
    UNTIL(is_open, "?1");
    struct feed *f = ext.feed;
    ext.feed = NULL;
    feed_stop(f);
}
