#include "lib/kube/reflector.h"

#include "tests/lib/http/watchplay.inc"
#include "tests/lib/tmpdir.h"

/* The whole of it, for one kind; the state is that at the end. */
static void play(const struct fakeapi_answer *script, size_t n,
                 const char *told, const char *requests,
                 struct reflector_state *ret_state)
{
    struct play p;
    play_prepare(&p, script, n);
    play_start(&p, 1, &quick);
    play_expect(&p, told, requests);
    reflector_state(p.reflector, 0, ret_state);
    play_end(&p);
}
#define PLAY(script, told, requests, state) \
    play(script, ARRAY_LEN(script), told, requests, state)

Test(reflector, lists_in_pages_and_watches_from_there)
{
    static const struct fakeapi_answer script[] = {
        {.body = LIST("20", NEXT("a/b+c="), P1 "," P2),
         .expect = "\r\nAccept: application/json\r\n"},
        {.body = LIST("20", NEXT("x"), "")},
        {.body = LIST("20", NEXT(""), P3)},
        {.body = EVENT("ADDED", OBJECT("p4", "21"))
             EVENT("MODIFIED", OBJECT("p4", "22"))
                 EVENT("DELETED", OBJECT("p4", "23")),
         .end = FAKEAPI_HOLD},
    };
    struct reflector_state s;
    PLAY(script,
         "list\nput " P1 "\nput " P2 "\nput " P3 "\nlisted\n"
         "put " OBJECT("p4", "21") "\nput " OBJECT("p4", "22") "\ngone " OBJECT(
             "p4", "23") "\n",
         FIRST MORE("a%2Fb%2Bc%3D") MORE("x") WATCH("20"), &s);
    cr_expect_str_eq(s.name, "pods");
    cr_expect(s.synced && s.watching);
    cr_expect(s.lists == 1 && s.watches == 1);
    cr_expect(s.events == 3 && s.failures == 0);
    cr_expect_gt(s.heard_ms, 0);
    cr_expect_str_empty(s.error);
}

Test(reflector, bytes_may_trickle)
{
    static const struct fakeapi_answer script[] = {
        {.body = LIST("20", "", P1 "," P2), .end = FAKEAPI_TRICKLE},
        {.body = EVENT("MODIFIED", P3) EVENT("DELETED", P1),
         .end = FAKEAPI_TRICKLE},
    };
    struct reflector_state s;
    PLAY(script,
         "list\nput " P1 "\nput " P2 "\nlisted\nput " P3 "\ngone " P1 "\n",
         FIRST WATCH("20") WATCH("11"), &s);
    cr_expect_eq(s.failures, 0);
}

/* Pages that came too late once would do so again; what fails in another way
 * is listed in pages again. */
Test(reflector, after_a_page_that_has_expired_all_is_listed_at_once)
{
    static const struct fakeapi_answer script[] = {
        {.body = LIST("20", NEXT("x"), P1 "," P2)},
        {.status = 410, .body = STATUS("410", "too old")},
        {.status = 500, .body = STATUS("500", "no leader")},
        {.body = LIST("20", NEXT("y"), P1 "," P2)},
        {.status = 410, .body = STATUS("410", "too old")},
        {.body = LIST("30", "", "")}, /* an empty list is one, too */
        {.status = 410, .body = STATUS("410", "too old")},
        {.body = LIST("40", "", P3)},
    };
    struct reflector_state s;
    PLAY(script,
         "list\nput " P1 "\nput " P2 "\nlist\nput " P1 "\nput " P2
         "\nlist\nlisted\nlist\nput " P3 "\nlisted\n",
         FIRST MORE("x") WHOLE FIRST MORE("y") WHOLE WATCH("30")
             FIRST WATCH("40"),
         &s);
    cr_expect_eq(s.lists, 5);
    cr_expect_eq(s.failures, 4);
    cr_expect_str_empty(s.error);
}

Test(reflector, a_page_that_was_cut_is_asked_for_again)
{
    static const struct fakeapi_answer script[] = {
        {.body = LIST("20", NEXT("x"), P1)},
        {.body = "{\"items\":[" P2 "," P3, .end = FAKEAPI_CUT},
        {.end = FAKEAPI_REFUSE},
        {.status = 500, .body = STATUS("500", "no leader")},
        {.status = 503, .body = "not JSON"},
        {.body = LIST("20", "", P2 "," P3)},
    };
    struct reflector_state s;
    PLAY(script,
         "list\nput " P1 "\nput " P2 "\nput " P3 "\nput " P2 "\nput " P3
         "\nlisted\n",
         FIRST MORE("x") MORE("x") MORE("x") MORE("x") MORE("x") WATCH("20"),
         &s);
    cr_expect(s.lists == 1 && s.failures == 4);
}

/* What was told of it may be gone by the time it is asked for again. */
Test(reflector, after_a_first_page_that_was_cut_the_list_begins_anew)
{
    static const struct fakeapi_answer script[] = {
        {.body = "{\"items\":[" P1 "," P2, .end = FAKEAPI_CUT},
        {.body = LIST("20", "", P2)},
    };
    struct reflector_state s;
    PLAY(script, "list\nput " P1 "\nput " P2 "\nlist\nput " P2 "\nlisted\n",
         FIRST FIRST WATCH("20"), &s);
    cr_expect(s.lists == 2 && s.failures == 1);
}

Test(reflector, resumes_at_the_last_version_seen)
{
    static const struct fakeapi_answer script[] = {
        LISTED_20,
        {.body = EVENT("ADDED", OBJECT("p2", "21")) "{\"type\":\"ADDED\",\"ob",
         .end = FAKEAPI_CUT}, /* in the middle of an event */
        {.body = EVENT("ADDED", OBJECT("p3", "22"))}, /* its time is over */
        {.body = BOOKMARK("30"), .end = FAKEAPI_CUT},
        {.end = FAKEAPI_REFUSE},
        {.body = ""},
        {.body = EVENT("DELETED", OBJECT("p1", "31")), .end = FAKEAPI_HOLD},
    };
    struct reflector_state s;
    PLAY(script,
         TOLD_20 "put " OBJECT("p2", "21") "\nput " OBJECT(
             "p3", "22") "\ngone " OBJECT("p1", "31") "\n",
         FIRST WATCH("20") WATCH("21") WATCH("22") WATCH("30") WATCH("30")
             WATCH("30"),
         &s);
    cr_expect_eq(s.lists, 1);
    cr_expect_eq(s.watches, 6);
    cr_expect_eq(s.events, 3);
    cr_expect_eq(s.failures, 3);
}

Test(reflector, lists_again_after_410)
{
    static const struct fakeapi_answer script[] = {
        LISTED_20,
        {.status = 410, .body = STATUS("410", "too old")},
        {.body = LIST("30", "", P2)},
        {.body = EVENT("ADDED", OBJECT("p3", "31"))
             EVENT("ERROR", STATUS("410", "too old")),
         .end = FAKEAPI_HOLD},
        {.body = LIST("40", "", P3)},
    };
    struct reflector_state s;
    PLAY(script,
         TOLD_20 "list\nput " P2
                 "\nlisted\nput " OBJECT("p3", "31") "\nlist\nput " P3
                                                     "\nlisted\n",
         FIRST WATCH("20") FIRST WATCH("30") FIRST WATCH("40"), &s);
    cr_expect_eq(s.lists, 3);
    cr_expect_eq(s.failures, 2);
}

/* Somebody could not keep what it was told. */
Test(reflector, lists_again_when_it_is_asked_to)
{
    static const struct fakeapi_answer script[] = {
        LISTED_20,
        {.body = EVENT("ADDED", P2), .end = FAKEAPI_HOLD},
        {.body = LIST("30", "", P3)}};
    struct play p;
    struct reflector_state s;
    play_prepare(&p, script, ARRAY_LEN(script));
    play_start(&p, 1, &quick);
    play_wait(&p, lines(TOLD_20) + 1, 2);
    reflector_relist(p.reflector, 0);
    play_expect(&p, TOLD_20 "put " P2 "\nlist\nput " P3 "\nlisted\n",
                FIRST WATCH("20") FIRST WATCH("30"));
    reflector_state(p.reflector, 0, &s);
    cr_expect_eq(s.failures, 0);
    play_end(&p);
}

/* A version that the server cannot go on from, whatever it calls it. */
Test(reflector, lists_again_when_a_version_is_refused_thrice)
{
    static const struct fakeapi_answer script[] = {
        LISTED_20,
        {.body = EVENT("ERROR", STATUS("500", "who knows"))},
        {.status = 504, .body = STATUS("504", "Too large resource version")},
        {.status = 400, .body = "what?"},
        LISTED_20,
    };
    struct reflector_state s;
    PLAY(script, TOLD_20 TOLD_20,
         FIRST WATCH("20") WATCH("20") WATCH("20") FIRST WATCH("20"), &s);
    cr_expect_eq(s.failures, 3);
}

Test(reflector, no_answer_is_no_reason_to_list_again)
{
    static const struct fakeapi_answer script[] = {
        LISTED_20,
        {.end = FAKEAPI_REFUSE},
        {.end = FAKEAPI_REFUSE},
        {.end = FAKEAPI_REFUSE},
        {.status = 429},
        {.status = 500},
        {.status = 503},
        {.status = 403},
    };
    struct reflector_state s;
    PLAY(script, TOLD_20,
         FIRST WATCH("20") WATCH("20") WATCH("20") WATCH("20") WATCH("20")
             WATCH("20") WATCH("20") WATCH("20"),
         &s);
    /* the first was sent again at once, as its connection was an old one */
    cr_expect_eq(s.failures, 6);
}

Test(reflector, a_list_that_is_none_says_so)
{
    static const struct fakeapi_answer script[] = {{.body = "{}"}};
    struct reflector_state s;
    PLAY(script, "", FIRST FIRST, &s); /* of which the second is held */
    cr_expect_str_eq(s.error, "list: has no items");
    cr_expect(!s.synced && !s.watching && s.failures == 1);
}

Test(reflector, garbage_is_not_told)
{
    static const struct fakeapi_answer script[] = {
        {.body = "<html>"},
        {.body = LIST("20", "", P1 ",7")},
        LISTED_20,
        {.body = EVENT("ADDED", OBJECT("p2", "21")) "{\"type\":\"ADDED\"}\n"},
        {.body = EVENT("EXPLODED", P2) EVENT("ADDED", P3)},
        {.body = EVENT("ADDED", OBJECT("p2", "22")) "{\"a\":nul}\n"},
        {.body = EVENT("ADDED", OBJECT("p2", "23")) "]"},
        {.body = EVENT("ADDED", OBJECT("p2", "24")) EVENT("ADDED", "{}")},
        {.body = EVENT("ADDED", OBJECT("p2", "25")), .end = FAKEAPI_HOLD},
    };
    struct reflector_state s;
#define PUT_P2(version) "put " OBJECT("p2", version) "\n"
    PLAY(script,
         "list\nput " P1 "\n" /* taken before the 7 was seen */
         TOLD_20 PUT_P2("21") PUT_P2("22") PUT_P2("23") PUT_P2("24")
             PUT_P2("25"),
         FIRST FIRST FIRST WATCH("20") WATCH("21") WATCH("21") WATCH("22")
             WATCH("23") WATCH("24"),
         &s);
#undef PUT_P2
    cr_expect_eq(s.failures, 7);
}

/* The kind with the large object says so, and the other goes on. */
Test(reflector, an_object_that_is_too_large_is_a_clear_failure)
{
    cleanup_str struct str large = STR_INIT(4096);
    str_addf(&large, "{\"items\":[{\"a\":\"%0*d\"}]}", OBJECT_MAX, 0);
    const struct fakeapi_answer script[] = {
        {.path = "/pods", .body = large.data},
        {.path = "/pods", .body = large.data},
        {.path = "/nodes", .body = LIST("7", "", P1)},
        {.path = "/nodes", .body = EVENT("ADDED", P2), .end = FAKEAPI_HOLD},
    };
    struct play p;
    struct reflector_state s;
    play_prepare(&p, script, ARRAY_LEN(script));
    play_start(&p, 2, &quick);
    play_wait(&p, 0, 5);
    wait_told(&p.told[1], 4);
    cleanup_free char *pods = told_text(&p.told[0]);
    cleanup_free char *nodes = told_text(&p.told[1]);
    cr_expect_str_empty(pods);
    cr_expect_str_eq(nodes, "list\nput " P1 "\nlisted\nput " P2 "\n");
    reflector_state(p.reflector, 0, &s);
    cr_expect_str_eq(s.error,
                     "list: the object at byte 10 has more than 200 bytes");
    cr_expect(!s.synced && s.failures == 2);
    reflector_state(p.reflector, 1, &s);
    cr_expect(s.synced && s.watching && s.failures == 0);
    cr_expect_not(reflector_is_synced(p.reflector));
    cr_expect_eq(reflector_n_kinds(p.reflector), 2);
    play_end(&p);
}

Test(reflector, a_new_token_is_used)
{
    static const struct fakeapi_answer script[] = {
        {.status = 401,
         .expect = "\r\nAuthorization: Bearer old\r\n",
         .body = STATUS("401", "Unauthorized")},
        {.body = LIST("20", "", P1),
         .expect = "\r\nAuthorization: Bearer new\r\n"},
        {.end = FAKEAPI_HOLD, .expect = "\r\nAuthorization: Bearer new\r\n"},
    };
    struct reflector_tuning slow = quick;
    struct play p;
    struct reflector_state s;
    char *dir = tmpdir_create();
    cleanup_free char *file = xasprintf("%s/token", dir);
    FILE *f = fopen(file, "w");
    (void)fputs("old\n", f);
    (void)fclose(f);
    /* files are looked at once a second */
    slow.wait_min_ms = slow.wait_max_ms = 2400;
    virtual_begin();
    atomic_store(&held, true);
    play_prepare(&p, script, ARRAY_LEN(script));
    fakeapi_config(p.api)->token_file = file;
    play_start(&p, 1, &slow);
    do {
        look_again();
        reflector_state(p.reflector, 0, &s);
    } while (!s.failures);
    cr_expect_str_eq(s.error, "list: 401 Unauthorized: our credentials "
                              "are not accepted");
    f = fopen(file, "w");
    (void)fputs("new\n", f);
    (void)fclose(f);
    atomic_store(&held, false);
    play_expect(&p, TOLD_20, FIRST FIRST WATCH("20"));
    play_end(&p);
    virtual_end();
    tmpdir_remove(dir);
}
