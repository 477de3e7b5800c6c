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
