#include "extender/pods/applied.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "extender/keep/writer.h"
#include "extender/pods/applied_apply.h"
#include "lib/base/str.h"
#include "lib/io/log.h"
#include "tests/lib/sim/simstate.h"
#include "tests/lib/tmpdir.h"

static struct demand_config config;
static struct applied *pods;
static struct writer *w;
static char *dir;
static unsigned told;

static void count(void *ctx)
{
    (void)ctx;
    told++;
}

static void begin(void)
{
    pods = applied_create(&config);
    applied_watch(pods, count, NULL);
    w = sim_writer_with(dir, pods);
}

static void end(void)
{
    writer_stop(w);
    applied_destroy(pods);
}

static void set_up(void)
{
    log_set_level(LOG_ERROR + 1);
    demand_config_default(&config);
    dir = tmpdir_create();
    begin();
}

static void tear_down(void)
{
    end();
    tmpdir_remove(dir);
}

TestSuite(applied, .init = set_up, .fini = tear_down);

/* Apply a body; its changes stay the caller's. */
static int apply_body(const char *text, struct applied_body *ret_body,
                      struct error *err)
{
    cr_assert_eq(applied_body_read(text, strlen(text), &config, ret_body, err),
                 0, "%s", err->text);
    struct writer_op op = {.kind = WRITER_PODS,
                           .changes = ret_body->changes,
                           .n_changes = ret_body->n};
    int r = writer_run(w, &op);
    *err = op.error;
    return r;
}

static int apply(const char *text)
{
    struct applied_body body;
    struct error err = {0};
    int r = apply_body(text, &body, &err);
    applied_body_fini(&body);
    return r;
}

/* A pod as JSON, in a static buffer each. */
static const char *pod(const char *name, const char *image)
{
    static char texts[4][512];
    static unsigned next;
    char *text = texts[next++ % 4];
    (void)snprintf(text, sizeof texts[0],
                   "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\",\"labels\":"
                   "{\"biga.dev/role\":\"xpu\"}},\"spec\":{\"containers\":[{"
                   "\"name\":\"c\",\"image\":\"%s\"}]}}",
                   name, image);
    return text;
}

static int change(struct pod_change c)
{
    struct writer_op op = {.kind = WRITER_PODS, .changes = &c, .n_changes = 1};
    return writer_run(w, &op);
}

/* What is there, as one text. */
static const char *all(void)
{
    static char text[1024];
    cleanup_with(pod_set) struct pod_set *s = applied_get(pods);
    size_t n = 0;
    text[0] = '\0';
    for (size_t i = 0; i < s->n_pods; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s ",
                              s->pods[i]->name,
                              s->pods[i]->deleting ? "-" : "");
    for (size_t i = 0; i < s->n_configs; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s:%s ",
                              s->configs[i]->secret ? "s" : "c",
                              s->configs[i]->name);
    return text;
}

static char *uid_of(const char *name)
{
    cleanup_with(pod_set) struct pod_set *s = applied_get(pods);
    const struct applied_pod *p = pod_set_find(s, "default", name);
    cr_assert(p, "%s", name);
    return xstrdup(p->uid);
}

#define MAP                                                        \
    "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{" \
    "\"name\":\"m\"},\"data\":{\"k\":\"%s\"}}"

Test(applied, are_applied_once)
{
    cr_expect_eq(apply(pod("b", "i:1")), 0);
    cr_expect_eq(apply(pod("a", "i:1")), 0);
    cr_expect_str_eq(all(), "a b ");
    cleanup_free char *uid = uid_of("a");
    unsigned before = told;
    cr_expect_eq(apply(pod("a", "i:1")), 0, "unchanged");
    cr_expect_eq(told, before);
    cr_expect_eq(apply(pod("a", "i:2")), -EEXIST);
    cleanup_free char *same = uid_of("a");
    cr_expect_str_eq(uid, same);
    cleanup_with(pod_set) struct pod_set *s = applied_get(pods);
    cr_expect_eq(pod_set_find_uid(s, uid), pod_set_find(s, "default", "a"));
    cr_expect_lt(pod_set_find(s, "default", "b")->number,
                 pod_set_find(s, "default", "a")->number);
}

/* The order of members, and what an API server writes, say nothing. */
Test(applied, are_the_same_in_any_order)
{
    cr_expect_eq(apply("{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\","
                       "\"labels\":{\"biga.dev/role\":\"xpu\",\"x\":\"y\"}},"
                       "\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":"
                       "\"i:1\"}]}}"),
                 0);
    cr_expect_eq(apply("{\"spec\":{\"containers\":[{\"image\":\"i:1\","
                       "\"name\":\"c\"}]},\"status\":{\"phase\":\"Running\"},"
                       "\"metadata\":{\"namespace\":\"default\",\"uid\":"
                       "\"other\",\"resourceVersion\":\"7\",\"labels\":{\"x\":"
                       "\"y\",\"biga.dev/role\":\"xpu\"},\"name\":\"a\"},"
                       "\"kind\":\"Pod\"}"),
                 0);
    cr_expect_str_eq(all(), "a ");
}

Test(applied, are_applied_together_or_not)
{
    cleanup_str struct str body = STR_INIT(4096);
    cr_assert_eq(apply(pod("b", "i:1")), 0);
    str_addf(&body, "%s %s", pod("a", "i:1"), pod("b", "i:2"));
    cr_expect_eq(apply(str_text(&body)), -EEXIST);
    cr_expect_str_eq(all(), "b ");
    str_reset(&body);
    str_addf(&body, "{\"kind\":\"List\",\"items\":[%s,%s]}", pod("a", "i:1"),
             pod("c", "i:1"));
    cr_expect_eq(apply(str_text(&body)), 0);
    cr_expect_str_eq(all(), "a b c ");
}

/* As with an API server, also after a start. */
Test(applied, immutable_configs_stay)
{
#define FIXED(data, more)                                                   \
    "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":" \
    "\"m\"},\"data\":{" data "}" more "}"
#define IMMUTABLE ",\"immutable\":true"
#define SAME "\"k\":\"1\",\"l\":\"\""
    static const char *const others[] = {
        FIXED(SAME, ""),
        FIXED(SAME, ",\"immutable\":false"),
        FIXED("\"k\":\"2\",\"l\":\"\"", IMMUTABLE),
        FIXED("\"k\":\"1\"", IMMUTABLE),
        FIXED(SAME ",\"m\":\"\"", IMMUTABLE),
        FIXED("\"k\":\"1\",\"j\":\"\"", IMMUTABLE),
        FIXED(SAME, IMMUTABLE ",\"binaryData\":{\"b\":\"AA==\"}"),
    };
    cr_assert_eq(apply(FIXED(SAME, "")), 0);
    cr_assert_eq(apply(FIXED("\"k\":\"0\"", "")), 0, "it may still change");
    cr_assert_eq(apply(FIXED(SAME, IMMUTABLE)), 0, "and become immutable");
    cr_assert_eq(apply(FIXED(SAME, IMMUTABLE)), 0, "nothing new");
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        cr_expect_eq(apply(others[i]), -EEXIST, "%s", others[i]);
    cleanup_with(pod_set) struct pod_set *s = applied_get(pods);
    const struct applied_config *c = pod_set_config(s, false, "default", "m");
    cr_expect(c->immutable && c->n_entries == 2 && c->entries[0].size == 1);
    cr_assert_eq(change((struct pod_change){.kind = CONFIG_DELETE,
                                            .namespace = "default",
                                            .name = "m"}),
                 0);
    cr_expect_eq(apply(others[2]), 0, "another one");
    cr_assert_eq(
        apply("{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{"
              "\"name\":\"s\"},\"data\":{\"k\":\"eA==\"},\"immutable\":true}"),
        0);
    cr_expect_eq(
        apply("{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{"
              "\"name\":\"s\"},\"data\":{\"k\":\"eQ==\"},\"immutable\":true}"),
        -EEXIST);
}

Test(applied, replace_configs)
{
    char text[256];
    (void)snprintf(text, sizeof text, MAP, "1");
    cr_assert_eq(apply(text), 0);
    cleanup_with(pod_set) struct pod_set *before = applied_get(pods);
    (void)snprintf(text, sizeof text, MAP, "22");
    cr_assert_eq(apply(text), 0);
    cleanup_with(pod_set) struct pod_set *after = applied_get(pods);
    cr_expect_eq(pod_set_config(before, false, "default", "m")->entries[0].size,
                 1, "who looked before sees what was");
    cr_expect_eq(pod_set_config(after, false, "default", "m")->entries[0].size,
                 2);
    cr_expect_neq(before->version, after->version);
    cr_assert_eq(
        apply("{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":"
              "{\"name\":\"m\"},\"data\":{\"a\":\"eA==\"},"
              "\"stringData\":{\"a\":\"over\",\"b\":\"\"}}"),
        0);
    cr_expect_str_eq(all(), "c:m s:m ");
    cleanup_with(pod_set) struct pod_set *s = applied_get(pods);
    const struct applied_config *c = pod_set_config(s, true, "default", "m");
    cr_assert_eq(c->n_entries, 2);
    cr_expect_str_eq(c->entries[0].data, "over");
    cr_expect_eq(c->entries[1].size, 0);
    cr_expect_eq(change((struct pod_change){.kind = CONFIG_DELETE,
                                            .namespace = "default",
                                            .name = "m"}),
                 0);
    cr_expect_str_eq(all(), "s:m ");
    cr_expect_eq(change((struct pod_change){.kind = CONFIG_DELETE,
                                            .namespace = "default",
                                            .name = "m"}),
                 -ENOENT);
}

/* A pod is told to end, ends, and is forgotten; each survives a restart. */
Test(applied, end_and_are_forgotten)
{
    struct pod_change c = {.kind = APPLIED_DELETE,
                           .namespace = "default",
                           .name = "a",
                           .grace_s = 5};
    cr_assert_eq(apply(pod("a", "i:1")), 0);
    cr_assert_eq(apply(pod("b", "i:1")), 0);
    cleanup_with(pod_status) struct pod_status *status = pod_status_create(1);
    status->state = POD_STATE_FAILED;
    (void)snprintf(status->reason, sizeof status->reason, "ExitCode");
    (void)snprintf(status->message, sizeof status->message, "it ended with 3");
    cr_assert_eq(change((struct pod_change){.kind = APPLIED_END,
                                            .namespace = "default",
                                            .name = "b",
                                            .ended = POD_STATE_FAILED,
                                            .status = status}),
                 0);
    cr_assert_eq(change(c), 0);
    cr_expect_eq(apply(pod("a", "i:1")), -EEXIST, "it is ending");
    cleanup_free char *uid = uid_of("a");
    end();
    begin();
    cr_expect_str_eq(all(), "a- b ");
    cleanup_free char *same = uid_of("a");
    cr_expect_str_eq(uid, same);
    cleanup_with(pod_set) struct pod_set *s = applied_get(pods);
    cr_expect_eq(pod_set_find(s, "default", "a")->grace_s, 5);
    const struct applied_pod *b = pod_set_find(s, "default", "b");
    cr_expect_eq(b->ended, POD_STATE_FAILED);
    cr_expect_eq(b->status->state, POD_STATE_FAILED);
    cr_expect_str_eq(b->status->reason, "ExitCode");

    c.kind = APPLIED_FORGET;
    c.uid = b->uid;
    cr_expect_eq(change(c), -ENOENT, "of another uid");
    c.uid = uid;
    cr_expect_eq(change(c), 0);
    cr_expect_eq(change(c), -ENOENT);
    end();
    begin();
    cr_expect_str_eq(all(), "b ");
}

Test(applied, tell_how_they_fare)
{
    cleanup_with(pod_status) struct pod_status *s = pod_status_create(1);
    cr_assert_eq(apply(pod("a", "i:1")), 0);
    cleanup_free char *uid = uid_of("a");
    unsigned before = told;
    s->state = POD_STATE_RUNNING;
    s->ready = true;
    s->containers[0].restarts = 3;
    cr_expect_eq(applied_set_status(pods, "nobody", s), -ENOENT);
    cr_expect_eq(told, before);
    cr_expect_eq(applied_set_status(pods, uid, s), 0);
    cr_expect_eq(told, before + 1);
    cr_expect_eq(applied_set_status(pods, uid, s), 0);
    cr_expect_eq(told, before + 1, "no news");
    /* a delete leaves it as it is */
    cr_expect_eq(change((struct pod_change){.kind = APPLIED_DELETE,
                                            .namespace = "default",
                                            .name = "a",
                                            .grace_s = -1}),
                 0);
    cleanup_with(pod_set) struct pod_set *set = applied_get(pods);
    const struct applied_pod *p = pod_set_find_uid(set, uid);
    cr_expect_eq(p->status->state, POD_STATE_RUNNING);
    cr_expect_eq(pod_status_restarts(p->status), 3);
    cr_expect(p->deleting);
    cr_expect_eq(p->grace_s, 30, "its own");
}

/* Why it was over is kept while it is stopped. */
Test(applied, keep_why_they_are_over)
{
    cleanup_with(pod_status) struct pod_status *over = pod_status_create(0);
    cleanup_with(pod_status) struct pod_status *gone = pod_status_create(0);
    cr_assert_eq(apply(pod("a", "i:1")), 0);
    cleanup_free char *uid = uid_of("a");
    over->state = POD_STATE_FAILED;
    (void)snprintf(over->reason, sizeof over->reason, "JobFailed");
    gone->state = POD_STATE_GONE;
    (void)snprintf(gone->reason, sizeof gone->reason, "Stopped");
    cr_assert_eq(change((struct pod_change){.kind = APPLIED_END,
                                            .namespace = "default",
                                            .name = "a",
                                            .ended = POD_STATE_FAILED,
                                            .status = over}),
                 0);
    cr_assert_eq(applied_set_status(pods, uid, gone), 0);
    cleanup_with(pod_set) struct pod_set *set = applied_get(pods);
    const struct applied_pod *p = pod_set_find_uid(set, uid);
    cr_expect_eq(p->status->state, POD_STATE_GONE);
    cr_expect_str_eq(p->status->reason, "JobFailed");
}

/* Readers, tellers and the writer at once: nobody sees half of anything. */
static atomic_bool stop_it;

static void *look(void *ctx)
{
    size_t seen = 0;
    (void)ctx;
    while (!atomic_load(&stop_it)) {
        cleanup_with(pod_set) struct pod_set *s = applied_get(pods);
        for (size_t i = 0; i < s->n_pods; i++)
            seen += pod_set_find_uid(s, s->pods[i]->uid) == s->pods[i] &&
                    s->by_uid[i] != NULL;
        if (seen > (size_t)1 << 40)
            break;
    }
    return NULL;
}

Test(applied, are_read_while_they_change)
{
    pthread_t threads[2];
    atomic_store(&stop_it, false);
    for (int i = 0; i < 2; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, look, NULL), 0);
    for (int i = 0; i < 50; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "p%02d", i);
        cr_assert_eq(apply(pod(name, "i:1")), 0);
        cleanup_free char *uid = uid_of(name);
        cleanup_with(pod_status) struct pod_status *s = pod_status_create(0);
        s->state = POD_STATE_RUNNING;
        cr_assert_eq(applied_set_status(pods, uid, s), 0);
        if (i % 2)
            cr_assert_eq(change((struct pod_change){.kind = APPLIED_FORGET,
                                                    .namespace = "default",
                                                    .name = name}),
                         0);
    }
    atomic_store(&stop_it, true);
    for (int i = 0; i < 2; i++)
        (void)pthread_join(threads[i], NULL);
    cleanup_with(pod_set) struct pod_set *s = applied_get(pods);
    cr_expect_eq(s->n_pods, 25);
}

/* --- bodies ------------------------------------------------------------------- */

Test(applied, name_what_is_wrong)
{
    static const struct {
        const char *text, *what;
    } bad[] = {
        {"", "is empty"},
        {"{}", "document 1 ( default/): metadata"},
        {"[]", "document 1: must be an object"},
        {"{\"kind\":\"CronJob\",\"metadata\":{}}", "kind: is \"CronJob\""},
        {"{\"kind\":\"List\"}", "document 1 (List): items"},
        {"{\"kind\":\"List\",\"items\":[1]}", "document 1, items[0]"},
        {"{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"},\"spec\":{"
         "\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}",
         "document 1 (Pod default/a): metadata.labels[\"biga.dev/role\"]"},
        {"{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"labels\":{"
         "\"biga.dev/role\":\"card\"}},\"spec\":{\"containers\":[{\"name\":"
         "\"c\",\"image\":\"i\"}]}}",
         "is \"card\", must be \"host\""},
        {"{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"},\"spec\":{"
         "\"nodeSelector\":{\"x\":\"y\"}}}",
         "spec.nodeSelector: is {\"x\":\"y\"}"},
        {"{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"labels\":{"
         "\"biga.dev/role\":\"host\"},\"annotations\":{"
         "\"biga.dev/buddy\":\"t\"}},\"spec\":{\"containers\":"
         "[{\"name\":\"c\",\"image\":\"i\"}]}}",
         "biga.dev/buddy"},
        {"{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":"
         "\"a\"},\"data\":{\"k\":\"?\"}}",
         "(Secret default/a): data: \"k\" is no base64"},
        {"{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":"
         "\"a\"},\"data\":{\"../k\":\"\"}}",
         "key \"../k\""},
        {"{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":"
         "\"a\"},\"data\":{\"k\":\"\"},\"binaryData\":{\"k\":\"\"}}",
         "\"k\" is given twice"},
        {"{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":"
         "\"a\"}} {\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{"
         "\"name\":\"a\"}}",
         "document 2 (ConfigMap default/a): metadata.name: there are two"},
        {"{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":"
         "\"a\"}} {",
         "line 1"},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct applied_body body;
        struct error err = {0};
        cr_expect_eq(applied_body_read(bad[i].text, strlen(bad[i].text),
                                       &config, &body, &err),
                     -EINVAL, "%s", bad[i].text);
        cr_expect(strstr(err.text, bad[i].what), "%s: no %s", err.text,
                  bad[i].what);
    }
}

Test(applied, refuse_a_config_that_is_too_big)
{
    enum { MAX = PODSPEC_FILES_SIZE_MAX };
    static const char *const members[] = {"data", "binaryData"};
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        bool encoded = i == 1;
        size_t text = encoded ? (size_t)(MAX + 2) / 3 * 4 : MAX;
        for (size_t more = 0; more < 2; more++) {
            cleanup_str struct str body = STR_INIT(4 << 20);
            struct applied_body read;
            struct error err = {0};
            str_addf(&body,
                     "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\","
                     "\"metadata\":{\"name\":\"a\"},\"%s\":{\"k\":\"",
                     members[i]);
            for (size_t n = text + more * 4; n > 2; n--)
                str_add_c(&body, 'A');
            str_add(&body, encoded ? "==\"}}" : "AA\"}}");
            int e = applied_body_read(str_text(&body), body.size, &config,
                                      &read, &err);
            cr_expect_eq(e, more ? -EINVAL : 0, "%s: %s", members[i], err.text);
            if (e == 0)
                applied_body_fini(&read);
            else
                cr_expect(strstr(err.text, "more than 1048576 bytes"), "%s",
                          err.text);
        }
    }
}

/* --- the database ---------------------------------------------------------------- */

static void execute(const char *sql)
{
    cleanup_free char *path = xasprintf("%s/biga.db", dir);
    sqlite3 *db = NULL;
    char *error = NULL;
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    (void)sqlite3_exec(db, sql, NULL, NULL, &error);
    cr_assert_null(error, "%s", error);
    cr_assert_eq(sqlite3_close(db), SQLITE_OK);
}

Test(applied, get_tables_in_an_older_database)
{
    end();
    execute("DROP TABLE pods; DROP TABLE configs; PRAGMA user_version = 1");
    begin();
    cr_expect_eq(apply(pod("a", "i:1")), 0);
    end();
    begin();
    cr_expect_str_eq(all(), "a ");
}

Test(applied, are_saved_from_a_damaged_database)
{
    char text[256];
    (void)snprintf(text, sizeof text, MAP, "1");
    cr_assert_eq(apply(text), 0);
    cr_assert_eq(apply(pod("a", "i:1")), 0);
    cr_assert_eq(apply(pod("b", "i:1")), 0);
    cleanup_free char *uid = uid_of("a");
    end();
    execute("UPDATE meta SET sum = 1; UPDATE pods SET sum = 1 "
            "WHERE name = 'b'");
    begin();
    cr_expect_str_eq(all(), "a c:m ");
    cleanup_free char *same = uid_of("a");
    cr_expect_str_eq(uid, same);
}

Test(applied, are_the_api_servers_in_a_cluster)
{
    struct writer_config other = {.store = STORE_KUBERNETES, .fresh_ms = 1000};
    struct writer *kube = NULL;
    struct error err = {0};
    struct pod_change c = {
        .kind = APPLIED_DELETE, .namespace = "n", .name = "p"};
    struct writer_op op = {.kind = WRITER_PODS, .changes = &c, .n_changes = 1};
    cr_assert_eq(writer_start(&other, &kube, &err), 0, "%s", err.text);
    cr_expect_eq(writer_run(kube, &op), -ENOTSUP);
    cr_expect(strstr(op.error.text, "API server"), "%s", op.error.text);
    writer_stop(kube);
}

/* --- what a newer extender has stored ------------------------------------- */

static struct demand foreign_demand(const char *pair, const char *size)
{
    static const char uid[] = "00000000-0000-4000-8000-000000000001";
    const struct applied_pod_names names = {"default", "p", uid};
    cleanup_free char *json = xasprintf(
        "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\",\"namespace\":"
        "\"default\",\"uid\":\"%s\",\"labels\":{\"biga.dev/role\":\"other\","
        "\"biga.dev/job\":\"j\",\"biga.dev/pair\":\"%s\"},\"annotations\":{"
        "\"biga.dev/size\":\"%s\"}},\"spec\":{}}",
        uid, pair, size);
    cleanup_with(applied_pod) struct applied_pod *p =
        applied_pod_create_foreign(&names, json, strlen(json), &config, "new");
    cr_assert(p);
    cr_expect_str_eq(p->demand.job, "j");
    return p->demand;
}

/* Whatever stands there: pairs are gone through one by one. */
Test(applied, not_understood_are_within_limits)
{
    static const struct {
        const char *text;
        int32_t pair, size;
    } cases[] = {
        {"0", 0, 1},
        {"7", 7, 7},
        {"65536", 65536, 65536},
        {"65537", 65537, DEMAND_SIZE_MAX},
        {"99999999", DEMAND_PAIR_MAX, DEMAND_SIZE_MAX},
        {"4294967299", DEMAND_PAIR_MAX, DEMAND_SIZE_MAX},
        {"-1", 0, 1},
        {"+3", 0, 1},
        {" 3", 0, 1},
        {"3x", 0, 1},
        {"", 0, 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct demand d = foreign_demand(cases[i].text, cases[i].text);
        cr_expect_eq(d.pair, cases[i].pair, "%s: %d", cases[i].text, d.pair);
        cr_expect_eq(d.size, cases[i].size, "%s: %d", cases[i].text, d.size);
    }
}
