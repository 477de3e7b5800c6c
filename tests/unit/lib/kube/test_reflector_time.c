/* Of lib/kube/reflector.h what depends on time, which is virtual here. */
#include "lib/kube/reflector.h"

#include "tests/lib/http/rawclient.h"
#include "tests/lib/http/watchplay.inc"

Test(reflector_time, waits_as_long_as_it_is_asked_to)
{
    static const struct fakeapi_answer script[] = {
        {.status = 429, .head = "Retry-After: 1\r\n"}, LISTED_20};
    struct play p;
    virtual_begin();
    play_prepare(&p, script, ARRAY_LEN(script));
    int64_t begun = clock_ms();
    play_start(&p, 1, &quick);
    play_expect(&p, TOLD_20, FIRST FIRST WATCH("20"));
    cr_expect_geq(clock_ms() - begun, 1000);
    cr_expect_lt(clock_ms() - begun, 2000);
    play_end(&p);
    virtual_end();
}

/* When the answer to the n-th request was heard, of which nothing is told; each
 * line of its head is, and all of them are taken in one turn. */
static void wait_heard(struct play *p, size_t n)
{
    struct reflector_state s;
    do {
        look_again();
        reflector_state(p->reflector, 0, &s);
    } while (fakeapi_n_requests(p->api) < n || s.heard_ms < clock_ms());
    turns();
}

Test(reflector_time, silence_is_cut)
{
    static const struct fakeapi_answer script[] = {
        {.body = "{\"items\":[" P1, .end = FAKEAPI_HOLD},
        LISTED_20,
        {.body = EVENT("ADDED", OBJECT("p2", "21")), .end = FAKEAPI_HOLD},
        {.body = "", .end = FAKEAPI_HOLD},
        {.end = FAKEAPI_MUTE},
    };
    struct reflector_tuning tuning = quick;
    struct play p;
    struct reflector_state s;
    tuning.list_silence_ms = tuning.watch_silence_ms = 1500;
    virtual_begin();
    play_prepare(&p, script, ARRAY_LEN(script));
    play_start(&p, 1, &tuning);
    wait_told(&p.told[0], 2);
    virtual_take(1499);
    turns();
    cr_expect_eq(fakeapi_n_requests(p.api), 1, "too soon");
    virtual_take(1);
    wait_told(&p.told[0], 6);
    virtual_take(1500);
    wait_heard(&p, 4);
    virtual_take(1500);
    play_wait(&p, 6, 5);
    virtual_take(1500);
    play_expect(&p, "list\nput " P1 "\n" TOLD_20 "put " OBJECT("p2", "21") "\n",
                FIRST FIRST WATCH("20") WATCH("21") WATCH("21") WATCH("21"));
    reflector_state(p.reflector, 0, &s);
    /* the list and the watch without an answer; others may just be quiet */
    cr_expect_eq(s.failures, 2);
    cr_expect_str_eq(s.error, "watch: nothing was heard for 1500 ms");
    play_end(&p);
    virtual_end();
}

/* A server that ends each watch at once is not asked without a pause. */
Test(reflector_time, watches_that_end_at_once_are_failures)
{
    static const struct fakeapi_answer script[] = {
        LISTED_20, {.body = ""}, {.body = ""}, {.body = ""}};
    struct reflector_tuning tuning = quick;
    struct play p;
    struct reflector_state s;
    tuning.short_ms = 1000;
    virtual_begin(); /* or they would last as long as the machine is slow */
    play_prepare(&p, script, ARRAY_LEN(script));
    play_start(&p, 1, &tuning);
    play_expect(&p, TOLD_20,
                FIRST WATCH("20") WATCH("20") WATCH("20") WATCH("20"));
    reflector_state(p.reflector, 0, &s);
    cr_expect_eq(s.failures, 3);
    cr_expect(strstr(s.error, "without an event"), "%s", s.error);
    play_end(&p);
    virtual_end();
}

/* Lists of which none leads to a watch become rarer. */
Test(reflector_time, does_not_list_all_the_time)
{
    static const struct fakeapi_answer script[] = {
        LISTED_20, {.status = 410}, LISTED_20, {.status = 410},
        LISTED_20, {.status = 410}, LISTED_20};
    struct reflector_tuning tuning = quick;
    struct play p;
    tuning.wait_min_ms = 100;
    tuning.wait_max_ms = 1000;
    virtual_begin();
    play_prepare(&p, script, ARRAY_LEN(script));
    int64_t begun = clock_ms();
    play_start(&p, 1, &tuning);
    play_expect(&p, TOLD_20 TOLD_20 TOLD_20 TOLD_20,
                FIRST WATCH("20") FIRST WATCH("20") FIRST WATCH("20")
                    FIRST WATCH("20"));
    cr_expect_geq(clock_ms() - begun, 50 + 100 + 200);
    play_end(&p);
    virtual_end();
}

/* After many failures the ninth request, which is of the nth call, comes soon
 * after the eighth. */
static void expect_soon(const struct fakeapi_answer *script, size_t n,
                        size_t nth)
{
    struct reflector_tuning tuning = quick;
    struct play p;
    tuning.wait_min_ms = 150;
    tuning.wait_max_ms = 10000;
    virtual_begin();
    play_prepare(&p, script, n);
    play_start(&p, 1, &tuning);
    while (fakeapi_n_requests(p.api) < 9)
        look_again();
    int64_t ms = called_ms[nth - 1] - called_ms[nth - 2];
    cr_expect_lt(ms, 1000, "a fifth failure in a row waits 1200 at least");
    play_end(&p);
    virtual_end();
}

/* After a restart the server has no old versions: that it says so ends the
 * failures, and is no further one. */
Test(reflector_time, lists_soon_when_the_server_is_back)
{
    static const struct fakeapi_answer script[] = {
        LISTED_20,       {.body = EVENT("ADDED", P2)},
        {.status = 503}, {.status = 503},
        {.status = 503}, {.status = 503},
        {.status = 503}, {.status = 410, .body = STATUS("410", "too old")},
        LISTED_20};
    expect_soon(script, ARRAY_LEN(script), 9);
}

/* One that has just come up may refuse us before it knows our rights. */
Test(reflector_time, asks_soon_for_rights_that_are_not_known_yet)
{
    static const struct fakeapi_answer script[] = {
        LISTED_20,
        {.body = EVENT("ADDED", P2)},
        {.end = FAKEAPI_REFUSE},
        {.end = FAKEAPI_REFUSE},
        {.end = FAKEAPI_REFUSE},
        {.end = FAKEAPI_REFUSE},
        {.end = FAKEAPI_REFUSE},
        {.status = 403, .body = STATUS("403", "forbidden")},
        {.body = ""}};
    /* the first that is refused has a kept connection, and is sent twice */
    expect_soon(script, ARRAY_LEN(script), 8);
}

/* What one can do without is asked for ever less often while it is
 * forbidden. */
Test(reflector_time, asks_seldom_for_what_it_can_do_without)
{
    static const struct fakeapi_answer no = {
        .status = 403, .body = STATUS("403", "forbidden")};
    const struct fakeapi_answer script[] = {LISTED_20, no, no, no, no,
                                            no,        no, no, no, no};
    struct reflector_tuning tuning = quick;
    struct play p;
    struct reflector_state s;
    tuning.forbidden_max_ms = 10000;
    play_prepare(&p, script, ARRAY_LEN(script));
    p.kinds[0].without = "it is looked at now and then";
    virtual_begin();
    int64_t begun = clock_ms();
    play_start(&p, 1, &tuning);
    while (fakeapi_n_requests(p.api) < ARRAY_LEN(script))
        look_again();
    /* at least half of 2, 4, 8 … ms after each of them, without end at 8 */
    cr_expect_geq(clock_ms() - begun, (1 << 8) - 1);
    reflector_state(p.reflector, 0, &s);
    cr_expect(strstr(s.error, "watch: 403 forbidden"), "%s", s.error);
    play_end(&p);
    virtual_end();
}

/* What the cluster does not have, and one can do without, counts as empty, and
 * is no failure; it is told once, and found when it comes. */
Test(reflector_time, asks_again_for_what_is_absent)
{
    static const struct fakeapi_answer none = {.status = 404, .body = "no"};
    const struct fakeapi_answer script[] = {none, none, LISTED_20,
                                            none, none, {.end = FAKEAPI_HOLD}};
    struct reflector_tuning tuning = quick;
    struct play p;
    struct reflector_state s;
    tuning.absent_ms = 5000;
    cr_expect_lt(reflector_tuning_default.absent_ms, 5000);
    play_prepare(&p, script, ARRAY_LEN(script));
    p.kinds[0].without = "nothing is missed";
    virtual_begin();
    int64_t begun = clock_ms();
    play_start(&p, 1, &tuning);
    wait_told(&p.told[0], 2);
    cr_expect(reflector_is_synced(p.reflector));
    play_expect(&p, "list\nlisted\n" TOLD_20 "list\nlisted\n",
                FIRST FIRST FIRST WATCH("20") FIRST FIRST);
    cr_expect_geq(clock_ms() - begun, 20000);
    reflector_state(p.reflector, 0, &s);
    cr_expect_eq(s.failures, 0);
    cr_expect(strstr(s.error, "no such resource"), "%s", s.error);
    play_end(&p);
    virtual_end();
}

/* Others wait for what has to be there, and for what may be seen. */
Test(reflector_time, is_synced_without_what_it_may_not_see)
{
    static const struct fakeapi_answer no = {
        .status = 403, .body = STATUS("403", "forbidden")};
    static const struct fakeapi_answer none = {.status = 404, .body = "no"};
    for (int may_lack = 0; may_lack < 2; may_lack++) {
        const struct fakeapi_answer script[] = {may_lack ? no : none};
        struct reflector_state s;
        struct play p;
        play_prepare(&p, script, ARRAY_LEN(script));
        p.kinds[0].without = may_lack ? "it is not seen" : NULL;
        virtual_begin();
        play_start(&p, 1, &quick);
        do {
            look_again();
            reflector_state(p.reflector, 0, &s);
        } while (s.failures < 1);
        cr_expect_eq(reflector_is_synced(p.reflector), may_lack == 1);
        play_end(&p);
        virtual_end();
    }
}

Test(reflector_time, asks_with_its_selector)
{
    static const struct fakeapi_answer script[] = {
        {.body = LIST("20", NEXT("x"), P1)}, LISTED_20};
    struct play p;
    play_prepare(&p, script, ARRAY_LEN(script));
    p.kinds[0].query = "labelSelector=biga.dev%2Frole";
    p.kinds[0].handler = (struct reflector_handler){.listed = told_listed};
    play_start(&p, 1, &quick);
    play_expect(&p, "listed\n",
                "/pods?labelSelector=biga.dev%2Frole&limit=2\n"
                "/pods?labelSelector=biga.dev%2Frole&limit=2&continue=x\n"
                "/pods?labelSelector=biga.dev%2Frole&watch=1&"
                "allowWatchBookmarks=true&timeoutSeconds=&"
                "resourceVersion=20\n");
    play_end(&p);
}

/* No time goes on for which it could wait. */
Test(reflector_time, stops_at_once_whatever_it_waits_for)
{
    static const struct fakeapi_answer scripts[][2] = {
        {LISTED_20, {.body = "", .end = FAKEAPI_HOLD}}, /* for an event, */
        {{.end = FAKEAPI_HOLD}},                        /* for a list, */
        {{.status = 500}, {.status = 500}},             /* after a failure */
    };
    struct reflector_tuning slow = reflector_tuning_default;
    slow.wait_min_ms = slow.wait_max_ms = 60000;
    virtual_begin();
    atomic_store(&held, true);
    for (size_t i = 0; i < ARRAY_LEN(scripts); i++) {
        struct play p;
        play_prepare(&p, scripts[i], 2);
        play_start(&p, 1, &slow);
        play_wait(&p, 0, i == 0 ? 2 : 1);
        reflector_stop(steal(&p.reflector));
        play_end(&p);
    }
    virtual_end();
}

Test(reflector_time, an_absent_server_is_tried_again_and_again)
{
    struct play p;
    struct reflector_state s;
    struct error err = {0};
    uint16_t port;
    cleanup_fd int fd = raw_nowhere(&port);
    cleanup_free char *server = xasprintf("http://127.0.0.1:%u", port);
    struct kube_config config = {.server = server};
    play_prepare(&p, NULL, 0);
    cr_assert_eq(
        reflector_start_tuned(&config, p.kinds, 1, &quick, &p.reflector, &err),
        0, "%s", err.text);
    do {
        look_again();
        reflector_state(p.reflector, 0, &s);
    } while (s.failures < 5);
    cr_expect(!s.synced && !s.watching);
    cr_expect(strstr(s.error, "127.0.0.1"), "%s", s.error);
    play_end(&p);
}
