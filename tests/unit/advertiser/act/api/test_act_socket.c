/* The socket, with an actuator that has no cards. */
#include "advertiser/act/api/socket.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "lib/base/json.h"
#include "lib/base/mem.h"
#include "lib/http/http.h"
#include "lib/io/clock.h"
#include "tests/lib/card/fakeactuator.inc"
#include "tests/lib/tmpdir.h"
#include "tests/lib/virtual.h"

enum { STEP_MS = 100 };

static struct {
    char *dir, *path, *base;
    struct act_socket *s;
    unsigned n_threads; /* before there was one */
} at;

/* Of this process. */
static unsigned n_threads(void)
{
    unsigned n = 0;
    DIR *dir = opendir("/proc/self/task");
    while (readdir(dir))
        n++;
    (void)closedir(dir);
    return n;
}

static void start(void)
{
    struct error err;
    struct actuator *a;
    const struct actuator_config config = {.node = "h"};
    virtual_begin();
    at.n_threads = n_threads();
    at.dir = tmpdir_create();
    at.path = xasprintf("%s/actuator.sock", at.dir);
    at.base = xasprintf("unix:%s", at.path);
    (void)actuator_create(&config, &a, &err);
    cr_assert_eq(act_socket_start(a, at.path, &at.s, &err), 0, "%s", err.text);
}

static unsigned look(const unsigned *value)
{
    pthread_mutex_lock(&fake.lock);
    unsigned now = *value;
    pthread_mutex_unlock(&fake.lock);
    return now;
}

static void look_again(void)
{
    (void)poll(NULL, 0, 1);
}

static void *stop_thread(void *arg)
{
    bool *all_ended = arg;
    *all_ended = act_socket_stop(at.s);
    return NULL;
}

struct asking {
    const char *method, *path, *body;
    long status;
    atomic_bool answered;
    pthread_t thread;
};

/* Time is waited for, by others than calls of a frozen card and whoever looks
 * after connections: by who looks at questions now and then or, once the
 * listener is gone, by the stop for calls. */
static bool time_is_awaited(void)
{
    int64_t next_ms;
    bool listens = access(at.path, F_OK) == 0;
    bool questions = look(&fake.n_for_news) > 0;
    size_t n = clock_waiting(&next_ms);
    return (questions || !listens) && n > look(&fake.n_waiting) + listens;
}

/* As act_socket_stop(), for which time goes on, at most so much: a question is
 * looked at now and then, and calls are not waited for beyond a second.  Not
 * before it has refused that one, if any: else who looks takes the time. */
static bool stop_socket(int64_t most_ms, struct asking *refused)
{
    pthread_t thread;
    bool all_ended = false;
    int64_t ms = 0;
    cr_assert_eq(pthread_create(&thread, NULL, stop_thread, &all_ended), 0);
    while (pthread_tryjoin_np(thread, NULL) != 0) {
        bool begun = !refused || atomic_load(&refused->answered);
        if (begun && ms < most_ms && time_is_awaited()) {
            virtual_take(STEP_MS);
            ms += STEP_MS;
        }
        look_again();
    }
    return all_ended;
}

static void stop(void)
{
    fake_thaw();
    while (look(&fake.n_waiting) > 0)
        look_again();
    cr_expect(stop_socket(500, NULL));
    fake_fini();
    tmpdir_remove(at.dir);
    free(at.path);
    free(at.base);
    virtual_end();
}

TestSuite(act_socket, .init = start, .fini = stop, .timeout = 180);

/* One request on a connection of its own. */
static long call(const char *method, const char *path, const char *body,
                 const char *accept, struct str *out)
{
    struct http_client *c = NULL;
    struct http_answer a = {.body = STR_INIT(4 << 20)};
    struct error err = {0};
    cr_assert_eq(http_client_create(at.base, 60000, &c, &err), 0, "%s",
                 err.text);
    cr_assert_eq(http_call(c, method, path, body, body ? strlen(body) : 0,
                           accept, &a, &err),
                 0, "%s", err.text);
    long status = a.status;
    str_reset(out);
    str_add_n(out, str_text(&a.body), a.body.size);
    str_fini(&a.body);
    http_client_destroy(c);
    return status;
}

static void expect(const char *method, const char *path, const char *body,
                   long status, const char *says)
{
    cleanup_str struct str out = STR_INIT(4 << 20);
    long got = call(method, path, body, NULL, &out);
    cr_expect_eq(got, status, "%s %s: %ld %s", method, path, got,
                 str_text(&out));
    cr_expect(strstr(str_text(&out), says), "%s %s: %s, not %s", method, path,
              str_text(&out), says);
}

#define BODY(uid, place, more) \
    "{\"uid\":\"" uid "\",\"place\":\"" place "\",\"spec\":{\"a\":1}" more "}"

static void put(const char *name, const char *body)
{
    cleanup_free char *path = xasprintf("/v1/pods/ns/%s", name);
    expect("PUT", path, body, 200, "\"state\":\"wanted\"");
}

Test(act_socket, a_pod_from_creation_to_oblivion)
{
    bool stopping;
    put("p", BODY("u1", "card-0000-17-00",
                  ",\"held\":true,\"env\":{\"A\":\"1\"},\"sriovVfs\":2,"
                  "\"files\":[]"));
    cr_expect_str_eq(fake.pods[0].view.owner, SOCKET_OWNER);
    cr_expect_str_eq(fake.pods[0].spec, "{\"a\":1}");
    cr_expect_str_eq(fake.pods[0].files, "[]");
    cr_expect_str_eq(fake.pods[0].env, "A=1 ");
    cr_expect_eq(fake.pods[0].sriov_vfs, 2);
    expect("GET", "/v1/pods/ns/p", NULL, 200, "\"held\":true");
    expect("POST", "/v1/pods/ns/p/start", NULL, 200, "\"held\":false");
    fake_set("u1", ACT_RUNNING, "");
    expect("GET", "/v1/pods/ns/p/state", NULL, 200,
           "\"containers\":[{\"name\":\"main\",\"state\":\"running\"");
    expect("GET", "/v1/pods", NULL, 200, "\"items\":[{\"namespace\":\"ns\"");
    expect("POST", "/v1/pods/ns/p/stop?grace=5", NULL, 202,
           "\"stopping\":true");
    cr_expect_eq(fake.pods[0].grace_s, 5);
    cr_expect(fake_has("u1", &stopping) && stopping);
    expect("DELETE", "/v1/pods/ns/p", NULL, 202, "\"stopping\":true");
    fake_set("u1", ACT_GONE, "");
    expect("DELETE", "/v1/pods/ns/p", NULL, 204, "");
    cr_expect(!fake_has("u1", NULL));
    expect("GET", "/v1/pods/ns/p", NULL, 404, "no pod ns/p");
}

Test(act_socket, bodies_and_parameters_are_checked)
{
    expect("PUT", "/v1/pods/ns/p", "{}", 400, "uid: is missing");
    expect("PUT", "/v1/pods/ns/p", "{\"uid\":", 400, "error");
    expect("PUT", "/v1/pods/ns/p", BODY("u", "host", ",\"x\":1"), 400,
           "\\\"x\\\" is not known");
    expect("PUT", "/v1/pods/ns/p", BODY("u", "host", ",\"stop\":true"), 400,
           "stop, grace");
    expect("PUT", "/v1/pods/NS/p", BODY("u", "host", ""), 400, "no pod's name");
    expect("PUT", "/v1/pods/ns/p?x=1", BODY("u", "host", ""), 400,
           "unknown query");
    expect("PUT", "/v1/pods/ns/p", BODY("u", "card-9", ""), 404,
           "no place card-9");
    put("p", BODY("u", "host", ""));
    expect("PUT", "/v1/pods/ns/p", BODY("v", "host", ""), 409, "not gone yet");
    expect("POST", "/v1/pods/ns/p/stop?grace=x", NULL, 400, "grace: is");
    expect("POST", "/v1/pods/ns/p/stop?grace=86401", NULL, 400, "grace: is");
    expect("POST", "/v1/pods/ns/p/stop", "{}", 413, "at most 0");
    expect("GET", "/v1/pods/ns/p/logs?max=1048577", NULL, 400, "max: is");
    expect("GET", "/v1/pods/ns/p/logs?offset=-1", NULL, 400, "offset: is");
    expect("GET", "/v1/pods/ns/p/logs?container=../x", NULL, 400,
           "no container's name");
    expect("POST", "/v1/pods/ns/p/exec", "{\"argv\":[]}", 400, "is empty");
    expect("POST", "/v1/pods/ns/p/exec", "{\"argv\":[1]}", 400, "argv");
    expect("POST", "/v1/pods/ns/p/exec", "{\"argv\":[\"a\"],\"x\":1}", 400,
           "x: unknown");
    expect("POST", "/v1/pods/ns/p/exec", "{\"argv\":[\"a\"],\"timeout\":301}",
           400, "timeout: is 301");
    expect("GET", "/v1/pods/ns/p/wait?wait=31", NULL, 400, "wait: is");
    expect("POST", "/v1/cards/card-9/drain", NULL, 404,
           "there is card-0000-17-00, card-0000-5e-00, host");
    expect("POST", "/v1/cards", NULL, 405, "not allowed");
}

Test(act_socket, pods_of_others_are_not_ended_here)
{
    struct error err;
    const struct act_pod pod = {.namespace = "ns",
                                .name = "x",
                                .uid = "ux",
                                .place = "host",
                                .pair_key = "",
                                .spec = "{}",
                                .spec_size = 2,
                                .owner = "extender"};
    cr_assert_eq(actuator_want(&fake, &pod, &err), 0);
    expect("DELETE", "/v1/pods/ns/x", NULL, 409, "because the extender");
    expect("POST", "/v1/pods/ns/x/stop", NULL, 409, "delete it there");
    expect("GET", "/v1/pods/ns/x", NULL, 200, "\"owner\":\"extender\"");
}

Test(act_socket, runs_and_reads_in_a_pod)
{
    put("p", BODY("u", "card-0000-17-00", ""));
    cleanup_str struct str out = STR_INIT(4096);
    expect("POST", "/v1/pods/ns/p/exec",
           "{\"container\":\"c\",\"argv\":[\"ls\",\"-l\"],\"timeout\":3}", 200,
           "{\"exitCode\":7,\"stdout\":\"YzozIGxzIC1s\",\"stderr\":\"/wAh\"}");
    str_add(&fake.log, "line 1\nline 2\n");
    expect("GET", "/v1/pods/ns/p/logs?offset=7&max=4", NULL, 200,
           "{\"offset\":7,\"next\":10,\"attempt\":1,\"data\":\"bGlu\"}");
    cr_expect_eq(call("GET", "/v1/pods/ns/p/logs", NULL, "text/plain", &out),
                 200);
    cr_expect_str_eq(str_text(&out), "line 1\nline 2\n");
}

Test(act_socket, reads_the_lines_of_a_log_that_are_wanted)
{
    static const struct {
        const char *query, *text;
    } asks[] = {
        {"tailLines=1", "two\n"},
        {"tailLines=9&timestamps=false", "one\ntwo\n"},
        {"timestamps=true",
         "2026-01-01T00:00:01Z one\n2026-01-01T00:00:02Z two\n"},
        {"sinceTime=2026-01-01T00:00:02Z", "two\n"},
        {"sinceTime=2026-01-01T00:00:02Z&timestamps=true",
         "2026-01-01T00:00:02Z two\n"},
        {"sinceSeconds=1", ""},
        {"attempt=1&offset=34&tailLines=5", "two\n"}, /* it goes on */
    };
    put("p", BODY("u", "card-0000-17-00", ""));
    str_add(&fake.log, "2026-01-01T00:00:01Z stdout F one\n"
                       "2026-01-01T00:00:02Z stdout F two\n");
    for (size_t i = 0; i < ARRAY_LEN(asks); i++) {
        cleanup_str struct str out = STR_INIT(4096);
        cleanup_free char *path = xasprintf("/v1/pods/ns/p/logs?%s",
                                            asks[i].query);
        cr_expect_eq(call("GET", path, NULL, "text/plain", &out), 200);
        cr_expect_str_eq(str_text(&out), asks[i].text, "%s", asks[i].query);
    }
    expect("GET", "/v1/pods/ns/p/logs?tailLines=1", NULL, 200,
           "\"next\":68,\"attempt\":1,\"data\":\"dHdvCg==\"");
    expect("GET", "/v1/pods/ns/p/logs?tailLines=x", NULL, 400, "tailLines: is");
    expect("GET", "/v1/pods/ns/p/logs?sinceTime=now", NULL, 400,
           "sinceTime: is \\\"now\\\", must look like");
    expect("GET", "/v1/pods/ns/p/logs?previous=1", NULL, 400,
           "previous: is \\\"1\\\", must be true or false");
}

Test(act_socket, says_where_a_command_in_a_host_pod_is_streamed)
{
    put("p", BODY("u", "host", ""));
    put("q", BODY("v", "card-0000-17-00", ""));
    expect("POST", "/v1/pods/ns/p/stream",
           "{\"container\":\"c\",\"argv\":[\"ls\",\"-l\"],\"stdin\":true}", 200,
           "{\"url\":\"http://127.0.0.1:1/p/c/2/ls/1\"}");
    expect("POST", "/v1/pods/ns/p/stream", "{\"argv\":[\"ls\"]}", 200,
           "http://127.0.0.1:1/p//1/ls/0");
    expect("POST", "/v1/pods/ns/p/stream", "{\"argv\":[\"a\"],\"stdin\":1}",
           400, "stdin");
    expect("POST", "/v1/pods/ns/p/stream", "{\"argv\":[\"a\"],\"timeout\":1}",
           400, "timeout");
    expect("POST", "/v1/pods/ns/q/stream", "{\"argv\":[\"ls\"]}", 501,
           "card-0000-17-00");
    expect("POST", "/v1/pods/ns/r/stream", "{\"argv\":[\"ls\"]}", 404,
           "there is no pod ns/r");
}

Test(act_socket, what_a_card_is_is_shown)
{
    expect("GET", "/v1/cards/0000:17:00.0/hardware", NULL, 200,
           "{\"driver\":\"d\",\"firmware\":\"1.2\",\"firmwareStored\":null,"
           "\"psid\":null,\"serial\":null,\"part\":null,\"chip\":null,"
           "\"mode\":null,\"eswitch\":null,\"sriovVfs\":4,"
           "\"sriovVfsMax\":null,\"scalableFunctions\":0}");
    expect("GET", "/v1/cards/host/hardware", NULL, 400, "is no card");
    expect("GET", "/v1/cards/card-9/hardware", NULL, 404, "there is no card");
}

Test(act_socket, cards_are_flashed)
{
    static const char path[] = "/v1/cards/0000:17:00.0/flash";
    expect("POST", path, "{\"bfb\":\"/a.bfb\"}", 202,
           "\"flash\":{\"state\":\"running\",\"percent\":0,\"phase\":\"\","
           "\"reason\":\"\",\"message\":\"/a.bfb   2700000 0\"}");
    expect("GET", "/v1/cards/card-0000-17-00", NULL, 200,
           "\"flash\":{\"state\":\"running\"");
    expect("POST", path,
           "{\"bfb\":\"/b\",\"sha256\":\"12\",\"version\":\"v\","
           "\"timeout\":7,\"force\":true}",
           202, "\"message\":\"/b 12 v 7000 1\"");
    expect("POST", path, "{}", 400, "bfb: required member missing");
    expect("POST", path, "{\"bfb\":\"/a\",\"x\":1}", 400, "x");
    expect("POST", path, "{\"bfb\":\"/a\",\"timeout\":21601}", 400, "timeout");
    expect("POST", path, "[", 400, "");
    expect("POST", "/v1/cards/card-9/flash", "{\"bfb\":\"/a\"}", 404,
           "there is no card");
    expect("GET", "/v1/cards/card-9", NULL, 404, "there is no card");
}

Test(act_socket, cards_are_shown_and_drained)
{
    expect("GET", "/v1/cards", NULL, 200,
           "{\"items\":[{\"name\":\"card-0000-17-00\",\"health\":\"ready\"");
    expect("POST", "/v1/cards/0000:17:00.0/drain", NULL, 200,
           "\"health\":\"drained\"");
    cr_expect(fake.places[0].drained);
    expect("POST", "/v1/cards/card-0000-17-00/undrain", NULL, 200,
           "\"health\":\"ready\"");
    expect("GET", "/v1/cards/card-0000-17-00/objects", NULL, 200,
           "\"kind\":\"sandbox\",\"id\":\"abc123\"");
}

static void *ask(void *arg)
{
    struct asking *a = arg;
    cleanup_str struct str out = STR_INIT(65536);
    a->status = call(a->method, a->path, a->body, NULL, &out);
    atomic_store(&a->answered, true);
    return NULL;
}

static void freeze(const char *place)
{
    (void)snprintf(fake.frozen, sizeof fake.frozen, "%s", place);
}

static void until_waiting(unsigned n)
{
    while (look(&fake.n_waiting) != n)
        look_again();
}

/* A question is open. */
static void until_for_news(void)
{
    while (look(&fake.n_for_news) == 0)
        look_again();
}

/* One that does not answer takes its own calls, and nobody else's. */
Test(act_socket, a_frozen_card_holds_up_only_itself)
{
    struct asking calls[SOCKET_CALLS_MAX];
    put("p", BODY("u", "card-0000-17-00", ""));
    put("q", BODY("v", "card-0000-5e-00", ""));
    freeze("card-0000-17-00");
    for (size_t i = 0; i < SOCKET_CALLS_MAX; i++) {
        calls[i] = (struct asking){.method = "GET",
                                   .path = "/v1/pods/ns/p/logs"};
        cr_assert_eq(pthread_create(&calls[i].thread, NULL, ask, &calls[i]), 0);
    }
    until_waiting(SOCKET_CALLS_MAX);
    expect("GET", "/v1/cards/card-0000-17-00/objects", NULL, 503,
           "calls are under way there");
    expect("GET", "/v1/pods/ns/q/logs", NULL, 200, "data");
    expect("GET", "/v1/pods", NULL, 200, "items");
    expect("POST", "/v1/pods/ns/p/stop", NULL, 202, "stopping");
    cr_expect_eq(look(&fake.n_waiting), SOCKET_CALLS_MAX, "they still wait");
    fake_thaw();
    for (size_t i = 0; i < SOCKET_CALLS_MAX; i++) {
        (void)pthread_join(calls[i].thread, NULL);
        cr_expect_eq(calls[i].status, 504);
    }
}

Test(act_socket, waits_end_with_a_change_or_in_time)
{
    put("p", BODY("u", "host", ""));
    uint64_t version = fake.pods[0].view.version;
    cleanup_free char *soon = xasprintf("/v1/pods/ns/p/wait?version=%u&wait=1",
                                        (unsigned)version);
    cleanup_free char *later =
        xasprintf("/v1/pods/ns/p/wait?version=%u&wait=20", (unsigned)version);
    expect("GET", "/v1/pods/ns/p/wait?version=0&wait=20", NULL, 200, "wanted");
    struct asking s = {.method = "GET", .path = soon};
    struct asking a = {.method = "GET", .path = later};
    struct asking b = {.method = "GET"};
    cr_assert_eq(pthread_create(&s.thread, NULL, ask, &s), 0);
    until_for_news();
    virtual_take(999);
    expect("GET", "/v1/pods/ns/p", NULL, 200, "wanted"); /* it goes on */
    cr_expect_not(atomic_load(&s.answered));
    while (!atomic_load(&s.answered)) {
        virtual_take(1); /* it may just have begun to wait for this one */
        look_again();
    }
    (void)pthread_join(s.thread, NULL);
    cr_expect_eq(s.status, 200);
    /* from here on no time goes on */
    cr_assert_eq(pthread_create(&a.thread, NULL, ask, &a), 0);
    until_for_news();
    fake_set("u", ACT_RUNNING, "");
    (void)pthread_join(a.thread, NULL);
    cr_expect_eq(a.status, 200);
    version = fake.pods[0].view.version;
    cleanup_free char *next = xasprintf("/v1/pods/ns/p/wait?version=%u&wait=20",
                                        (unsigned)version);
    b.path = next;
    cr_assert_eq(pthread_create(&b.thread, NULL, ask, &b), 0);
    until_for_news();
    struct error err;
    cr_assert_eq(actuator_forget(&fake, "u", &err), 0);
    (void)pthread_join(b.thread, NULL);
    cr_expect_eq(b.status, 404);
}

/* A stop answers those who wait, and does not wait long for a frozen card. */
Test(act_socket, a_stop_is_quick)
{
    struct asking a = {.method = "GET", .path = "/v1/pods/ns/p/logs"};
    put("p", BODY("u", "card-0000-17-00", ""));
    cleanup_free char *path = xasprintf("/v1/pods/ns/p/wait?version=%u&wait=20",
                                        (unsigned)fake.pods[0].view.version);
    struct asking b = {.method = "GET", .path = path};
    freeze("card-0000-17-00");
    cr_assert_eq(pthread_create(&a.thread, NULL, ask, &a), 0);
    until_waiting(1);
    cr_assert_eq(pthread_create(&b.thread, NULL, ask, &b), 0);
    until_for_news();
    cr_expect_not(stop_socket(5000, &a), "the call is under way");
    (void)pthread_join(a.thread, NULL);
    (void)pthread_join(b.thread, NULL);
    cr_expect_eq(a.status, 503);
    cr_expect_eq(b.status, 503);
    fake_thaw();
    until_waiting(0);
    while (n_threads() > at.n_threads) /* the call ends by itself */
        look_again();
    struct error err;
    cr_assert_eq(act_socket_start(&fake, at.path, &at.s, &err), 0, "%s",
                 err.text);
}
