#include "advertiser/act/pod/item.h"

#include <criterion/criterion.h>
#include <string.h>

static int answer_read(const char *json, struct act_answer *ret,
                       struct error *err)
{
    return act_answer_read(json, strlen(json), ret, err);
}

static void expect_refused(const char *json, const char *why)
{
    struct act_answer a = {0};
    struct error err = {0};
    cr_expect_eq(answer_read(json, &a, &err), -EINVAL, "%s", json);
    cr_expect(strstr(err.text, why), "%s: \"%s\", not \"%s\"", json, err.text,
              why);
    cr_expect_null(a.items);
}

Test(item, answers_are_read_whole)
{
    const char *json =
        "{\"version\":7,\"resend\":true,\"later\":{\"x\":[1]},\"items\":["
        "{\"uid\":\"0a-1\",\"namespace\":\"ns\",\"name\":\"job.x-0\","
        "\"place\":\"card-0000-17-00\",\"pairKey\":\"ns/job/0\","
        "\"host\":false,\"stop\":false,\"grace\":30,\"new\":null,"
        "\"env\":{\"BIGA_RANK\":\"0\",\"BIGA_JOB\":\"a\\u0062c\"},"
        "\"sriovVfs\":4,\"hook\":\"flash.sh\","
        "\"files\":[{\"kind\":\"ConfigMap\"}],\"spec\":{ \"kind\":\"Pod\"}},"
        "{\"uid\":\"u2\",\"namespace\":\"ns\",\"name\":\"h\","
        "\"place\":\"host\",\"host\":true,\"stop\":true,\"spec\":{}}]}";
    struct act_answer a = {0};
    struct error err = {0};
    cr_assert_eq(answer_read(json, &a, &err), 0, "%s", err.text);
    cr_expect_eq(a.version, 7);
    cr_expect(a.resend);
    cr_assert_eq(a.n, 2);
    const struct act_item *x = &a.items[0], *h = &a.items[1];
    cr_expect_str_eq(x->pod.uid, "0a-1");
    cr_expect_str_eq(x->pod.name, "job.x-0");
    cr_expect_str_eq(x->pod.pair_key, "ns/job/0");
    cr_expect_str_eq(x->pod.hook, "flash.sh");
    cr_expect_eq(x->pod.sriov_vfs, 4);
    cr_expect_eq(x->grace_s, 30);
    cr_assert_eq(x->pod.env.n, 2);
    cr_expect_str_eq(x->pod.env.list[1].key, "BIGA_JOB");
    cr_expect_str_eq(x->pod.env.list[1].value, "abc");
    cr_expect_eq(x->pod.spec_size, strlen("{ \"kind\":\"Pod\"}"));
    cr_expect_eq(strncmp(x->pod.spec, "{ \"kind\"", 8), 0);
    cr_expect_eq(strncmp(x->pod.files, "[{", 2), 0);
    cr_expect(h->pod.is_host && h->stop && !x->pod.is_host && !x->stop);
    cr_expect_eq(h->grace_s, -1);
    cr_expect_eq(h->pod.sriov_vfs, -1);
    cr_expect_null(h->pod.files);
    act_answer_fini(&a);
}

/* An answer that has no room for all. */
Test(item, what_comes_later_is_no_fault)
{
    const char *json =
        "{\"version\":7,\"items\":[{\"uid\":\"u1\",\"namespace\":\"ns\","
        "\"name\":\"a\",\"place\":\"host\",\"later\":true},{\"uid\":\"u2\","
        "\"namespace\":\"ns\",\"name\":\"b\",\"place\":\"host\",\"files\":[],"
        "\"fault\":\"its files are too large\",\"spec\":{}}],\"next\":\"u1\"}";
    struct act_answer a = {0};
    struct error err = {0};
    cr_assert_eq(answer_read(json, &a, &err), 0, "%s", err.text);
    cr_assert_eq(a.n, 2);
    cr_expect_str_eq(a.next, "u1");
    cr_expect(a.items[0].later && !a.items[1].later);
    cr_expect_null(a.items[0].fault);
    cr_expect_str_eq(a.items[1].fault, "its files are too large");
    act_answer_fini(&a);
    expect_refused("{\"version\":7,\"items\":[],\"next\":\"a b\"}", "next: is");

    /* nobody else may leave out what is to run */
    struct arena arena = {0};
    struct act_item item;
    const char *one = "{\"uid\":\"u\",\"place\":\"host\",\"later\":true}";
    cr_expect_eq(
        act_item_read(one, strlen(one), "ns", "a", &arena, &item, &err),
        -EINVAL);
    cr_expect(strstr(err.text, "\"later\" is not known"), "%s", err.text);
    arena_fini(&arena);
}

Test(item, what_is_kept_is_named)
{
    struct act_answer a = {0};
    struct error err = {0};
    cr_assert_eq(answer_read("{\"version\":7,\"items\":[{\"uid\":\"u1\","
                             "\"namespace\":\"ns\",\"name\":\"a\",\"place\":"
                             "\"host\",\"stop\":true,\"keep\":true,\"spec\":{}}"
                             "],\"kept\":[\"u1\",\"u2\"]}",
                             &a, &err),
                 0, "%s", err.text);
    cr_expect(a.items[0].stop && a.items[0].keep);
    cr_assert(a.has_kept);
    cr_assert_eq(a.n_kept, 2);
    cr_expect_str_eq(a.kept[1], "u2");
    act_answer_fini(&a);
    a = (struct act_answer){0};
    cr_assert_eq(answer_read("{\"version\":7,\"items\":[]}", &a, &err), 0);
    cr_expect_not(a.has_kept, "an older extender");
    act_answer_fini(&a);
    expect_refused("{\"version\":7,\"items\":[],\"kept\":1}", "kept: must be");
    expect_refused("{\"version\":7,\"items\":[],\"kept\":[1]}", "kept");
}

/* What ends pods must be whole. */
Test(item, half_answers_are_refused)
{
    expect_refused("", "line 1");
    expect_refused("{}", "version: is missing");
    expect_refused("{\"version\":1}", "items: is missing");
    expect_refused("{\"items\":[]}", "version: is missing");
    expect_refused("{\"version\":1,\"items\":null}", "items: must be a list");
    expect_refused("{\"version\":1,\"items\":[]", "line 1");
    expect_refused("{\"version\":1,\"items\":[]}x", "line 1");
    expect_refused("{\"version\":-1,\"items\":[]}", "version: is -1");
    expect_refused("{\"version\":1,\"items\":[],\"items\":[]}", "twice");
    expect_refused("[]", "line 1");
    expect_refused("null", "line 1");
}

/* With the uid all the same, and nothing else. */
static void expect_fault(const char *json, const char *why)
{
    struct act_answer a = {0};
    struct error err = {0};
    cr_assert_eq(answer_read(json, &a, &err), 0, "%s: %s", json, err.text);
    cr_assert(a.n == 1 && a.items[0].fault, "%s", json);
    cr_expect(strstr(a.items[0].fault, why), "%s: \"%s\", not \"%s\"", json,
              a.items[0].fault, why);
    cr_expect_str_eq(a.items[0].pod.uid, "u");
    act_answer_fini(&a);
}

#define ITEM(members)                                                         \
    "{\"version\":1,\"items\":[{\"namespace\":\"ns\",\"name\":\"p\"," members \
    "}]}"

/* Without its uid, an item could be of a pod that must not end. */
Test(item, uids_are_needed)
{
    expect_refused(ITEM("\"place\":\"host\",\"spec\":{}"),
                   "items[0].uid: is missing");
    expect_refused(ITEM("\"uid\":\"a/b\""), "items[0].uid: is \"a/b\"");
    expect_refused(ITEM("\"uid\":5"), "items[0].uid: must be a text");
    expect_refused("{\"version\":1,\"items\":[7]}", "must be an object");
}

#define U(members) ITEM("\"uid\":\"u\"," members)

Test(item, faults_are_one_items_and_name_the_member)
{
    expect_fault(U("\"spec\":{}"), "items[0].place: is missing");
    expect_fault(U("\"place\":\"host\""), "items[0].spec: is missing");
    expect_fault(U("\"uid\":\"v\""), "uid: is there twice");
    expect_fault(U("\"hook\":\"../x\""), "items[0].hook: is \"../x\"");
    expect_fault(U("\"hook\":\"a/x\""), "items[0].hook: is \"a/x\"");
    expect_fault(U("\"spec\":[]"), "items[0].spec: must be an object");
    expect_fault(U("\"files\":{}"), "items[0].files: must be a list");
    expect_fault(U("\"grace\":86401"), "grace: is 86401");
    expect_fault(U("\"grace\":1.5"), "integer");
    expect_fault(U("\"sriovVfs\":-2"), "sriovVfs: is -2");
    expect_fault(U("\"stop\":\"yes\""), "stop: must be true or false");
    expect_fault(U("\"env\":{\"1A\":\"x\"}"), "env: \"1A\"");
    expect_fault(U("\"env\":{\"A=B\":\"x\"}"), "env: \"A=B\"");
    expect_fault(U("\"env\":{\"A\":1}"), "env: must be a text");
    expect_fault(U("\"env\":{\"A\":\"1\",\"A\":\"2\"}"),
                 "\"A\" is there twice");
    expect_fault("{\"version\":1,\"items\":[{\"uid\":\"u\","
                 "\"place\":\"host\",\"spec\":{}}]}",
                 "items[0].name: is missing");
}

Test(item, one_uid_is_one_pod)
{
    expect_refused("{\"version\":1,\"items\":["
                   "{\"uid\":\"u\",\"namespace\":\"n\",\"name\":\"a\","
                   "\"place\":\"host\",\"spec\":{}},"
                   "{\"uid\":\"u\",\"namespace\":\"n\",\"name\":\"b\","
                   "\"place\":\"host\",\"spec\":{}}]}",
                   "two have the uid u");
}

static int item_read(const char *json, struct arena *arena,
                     struct act_item *ret, struct error *err)
{
    return act_item_read(json, strlen(json), "ns", "p", arena, ret, err);
}

Test(item, of_a_path_has_its_name)
{
    struct arena arena = {0};
    struct act_item item;
    struct error err = {0};
    const char *plain = "{\"uid\":\"u\",\"place\":\"host\",\"spec\":{},"
                        "\"held\":true}";
    cr_assert_eq(item_read(plain, &arena, &item, &err), 0, "%s", err.text);
    cr_expect_str_eq(item.pod.namespace, "ns");
    cr_expect_str_eq(item.pod.name, "p");
    cr_expect(item.pod.held);
    cr_expect_eq(item_read("{\"uid\":\"u\",\"place\":\"host\",\"spec\":{},"
                           "\"name\":\"q\"}",
                           &arena, &item, &err),
                 -EINVAL);
    cr_expect_str_eq(err.text, "name: is \"q\", the path has p");
    cr_expect_eq(item_read("{\"uid\":\"u\",\"plce\":\"host\",\"spec\":{}}",
                           &arena, &item, &err),
                 -EINVAL);
    cr_expect(strstr(err.text, "\"plce\" is not known"), "%s", err.text);
    arena_fini(&arena);
}

Test(item, long_texts_are_refused)
{
    cleanup_str struct str json = STR_INIT(4 << 20);
    str_add(&json, "{\"version\":1,\"items\":[{\"uid\":\"u\",\"place\":\"");
    for (int i = 0; i < 254; i++)
        str_add_c(&json, 'x');
    str_add(&json, "\"}]}");
    expect_fault(str_text(&json), "items[0].place: has over 253 bytes");
    str_reset(&json);
    str_add(&json,
            "{\"version\":1,\"items\":[{\"uid\":\"u\",\"spec\":{\"a\":\"");
    for (int i = 0; i < ITEM_SPEC_MAX; i++)
        str_add_c(&json, 'x');
    str_add(&json, "\"}}]}");
    expect_fault(str_text(&json), "items[0].spec: has 1048584 bytes");
}

Test(item, names)
{
    cr_expect(act_name_valid("a.b-c.0"));
    cr_expect(!act_name_valid("a..b") && !act_name_valid("-a") &&
              !act_name_valid("a-") && !act_name_valid("A") &&
              !act_name_valid("") && !act_name_valid("a/b"));
    cr_expect(act_namespace_valid("ns-1") && !act_namespace_valid("a.b") &&
              !act_namespace_valid("-"));
    cr_expect(act_uid_valid("A-z_0.9") && !act_uid_valid("") &&
              !act_uid_valid(".") && !act_uid_valid("a b"));
}
