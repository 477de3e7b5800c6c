#include "model/decide/policy.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/str.h"

static struct policy *read_ok(const char *text)
{
    struct policy *p = NULL;
    struct error err = {0};
    cr_assert_eq(policy_read(text, strlen(text), &p, &err), 0, "%s", err.text);
    return p;
}

Test(policy, reads_what_the_schema_shows)
{
    cleanup_with(policy) struct policy *p = read_ok(
        "{\"quotas\":[{\"namespace\":\"team-b\",\"cards\":0},"
        "{\"namespace\":\"team-a\",\"cards\":64,\"cardCores\":512,"
        "\"cardMemoryMiB\":1048576}],"
        "\"services\":[{\"namespace\":\"infra\",\"name\":\"logs\","
        "\"memoryMiB\":7,\"pci\":\"0000:AF:*\"},"
        "{\"namespace\":\"infra\",\"name\":\"hbn\",\"nodes\":\"*\","
        "\"models\":\"BlueField*\",\"cores\":2,\"memoryMiB\":2048,"
        "\"priority\":100}]}");
    cr_assert_eq(p->n_quotas, 2);
    const struct policy_quota *a = policy_find_quota(p, "team-a");
    cr_assert(a);
    cr_expect_eq(a->cards, 64);
    cr_expect_eq(a->cores, 512);
    cr_expect_eq(a->memory_mib, 1048576);
    const struct policy_quota *b = policy_find_quota(p, "team-b");
    cr_assert(b);
    cr_expect_eq(b->cards, 0);
    cr_expect_eq(b->cores, POLICY_UNLIMITED);
    cr_expect_null(policy_find_quota(p, "team-c"));
    cr_expect_null(policy_find_quota(NULL, "team-a"));

    cr_assert_eq(p->n_services, 2);
    cr_expect_str_eq(p->services[0].name, "hbn", "by priority");
    cr_expect_str_eq(p->services[0].nodes, "", "all");
    cr_expect_str_eq(p->services[0].models, "BlueField*");
    cr_expect_eq(p->services[0].cores, 2);
    cr_expect_str_eq(p->services[1].pci, "0000:af:*", "as it is written");
    cr_expect_eq(p->services[1].cores, 0);
    cr_expect_eq(p->services[1].priority, 0);
}

Test(policy, allows_sets_of_devices_by_namespace)
{
    cleanup_with(policy) struct policy *p = read_ok(
        "{\"devices\":[{\"namespace\":\"team-b\",\"sets\":[\"snap\",\"rdma\"]},"
        "{\"namespace\":\"team-a\",\"sets\":[]}]}");
    cleanup_with(policy) struct policy *other = read_ok(
        "{\"devices\":[{\"namespace\":\"team-b\",\"sets\":[\"snap\"]},"
        "{\"namespace\":\"team-a\",\"sets\":[]}]}");
    cr_expect_str_eq(policy_find_devices(p, "team-b"), "rdma snap");
    cr_expect_str_eq(policy_find_devices(p, "team-a"), "");
    cr_expect_str_eq(policy_find_devices(p, "team-c"), "");
    cr_expect_str_eq(policy_find_devices(NULL, "team-b"), "");
    cr_expect_neq(p->hash, other->hash);
}

Test(policy, may_be_empty)
{
    static const char *const texts[] = {"{}", "{\"quotas\":[]}",
                                        "{\"quotas\":null,\"services\":[]}"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        cleanup_with(policy) struct policy *p = read_ok(texts[i]);
        cr_expect_eq(p->n_quotas + p->n_services, 0);
    }
}

static const struct {
    const char *text, *error;
} refused[] = {
    {"", "unexpected end"},
    {"[]", "object"},
    {"{\"quota\":[]}", "quota"},
    {"{\"quotas\":[],\"quotas\":[]}", "duplicate key"},
    {"{\"quotas\":{}}", "quotas"},
    {"{\"devices\":[{\"namespace\":\"a\"}]}",
     "devices[0].sets: required member missing"},
    {"{\"devices\":[{\"namespace\":\"a\",\"sets\":[\"rdma\",\"A\"]}]}",
     "devices[0].sets: has \"A\", must be at most 8 names"},
    {"{\"devices\":[{\"namespace\":\"a\",\"sets\":[7]}]}",
     "devices[0].sets: has \"no text\""},
    {"{\"devices\":[{\"namespace\":\"A\",\"sets\":[]}]}",
     "devices[0].namespace: is \"A\""},
    {"{\"devices\":[{\"namespace\":\"a\",\"sets\":[]},"
     "{\"namespace\":\"a\",\"sets\":[]}]}",
     "devices: namespace \"a\" is there more than once"},
    {"{\"quotas\":[{\"cards\":1}]}", "quotas[0].namespace: required"},
    {"{\"quotas\":[{\"namespace\":\"A\",\"cards\":1}]}",
     "quotas[0].namespace: is \"A\""},
    {"{\"quotas\":[{\"namespace\":\"a-\",\"cards\":1}]}", "is \"a-\""},
    {"{\"quotas\":[{\"namespace\":\"a\"}]}", "quotas[0]: must limit"},
    {"{\"quotas\":[{\"namespace\":\"a\",\"cards\":-1}]}",
     "quotas[0].cards: is -1"},
    {"{\"quotas\":[{\"namespace\":\"a\",\"cards\":1.5}]}", "quotas[0].cards"},
    {"{\"quotas\":[{\"namespace\":\"a\",\"cards\":\"1\"}]}", "quotas[0].cards"},
    {"{\"quotas\":[{\"namespace\":\"a\",\"cards\":1,\"cores\":2}]}", "cores"},
    {"{\"quotas\":[{\"namespace\":\"a\",\"cards\":1},"
     "{\"namespace\":\"b\",\"cards\":1},{\"namespace\":\"a\",\"cards\":2}]}",
     "namespace \"a\" has more than one quota"},
    {"{\"services\":[{\"namespace\":\"a\",\"cores\":1}]}",
     "services[0].name: required"},
    {"{\"services\":[{\"namespace\":\"a\",\"name\":\"\",\"cores\":1}]}",
     "services[0].name: must not be empty"},
    {"{\"services\":[{\"namespace\":\"a\",\"name\":\"x\"}]}",
     "services[0]: must have a share"},
    {"{\"services\":[{\"namespace\":\"a\",\"name\":\"x\",\"cores\":70000}]}",
     "services[0].cores: is 70000"},
    {"{\"services\":[{\"namespace\":\"a\",\"name\":\"x\",\"cores\":1,"
     "\"priority\":9999999999}]}",
     "services[0].priority"},
    {"{\"services\":[{\"namespace\":\"a\",\"name\":\"x\",\"cores\":1,"
     "\"nodes\":\"n[1\"}]}",
     "services[0].nodes: is \"n[1\""},
    {"{\"services\":[{\"namespace\":\"a\",\"name\":\"x\",\"cores\":1},"
     "{\"namespace\":\"a\",\"name\":\"x\",\"cores\":2,\"nodes\":\"*\"}]}",
     "[0] and [1] are both service \"a/x\""},
};

Test(policy, says_what_is_wrong)
{
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        struct policy *p = NULL;
        struct error err = {0};
        cr_expect_eq(
            policy_read(refused[i].text, strlen(refused[i].text), &p, &err),
            -EINVAL, "%s", refused[i].text);
        cr_expect_null(p);
        cr_expect(strstr(err.text, refused[i].error), "%s: %s", refused[i].text,
                  err.text);
    }
}

Test(policy, has_a_hash_of_what_it_says)
{
    cleanup_with(policy) struct policy *a = read_ok(
        "{\"quotas\":[{\"namespace\":\"a\",\"cards\":1},"
        "{\"namespace\":\"b\",\"cards\":2}]}");
    cleanup_with(policy) struct policy *b = read_ok(
        "{ \"quotas\":[{\"cards\":2,\"namespace\":\"b\"},"
        "{\"namespace\":\"a\",\"cards\":1}], \"services\":[] }");
    cleanup_with(policy) struct policy *c = read_ok(
        "{\"quotas\":[{\"namespace\":\"a\",\"cards\":1},"
        "{\"namespace\":\"b\",\"cards\":3}]}");
    cr_expect_eq(a->hash, b->hash);
    cr_expect_neq(a->hash, c->hash);
}

Test(policy, matches_patterns)
{
    static const struct {
        const char *pattern, *text;
        bool matches;
    } cases[] = {
        {"", "", true},
        {"", "a", false},
        {"*", "", true},
        {"*", "abc", true},
        {"a*", "abc", true},
        {"*c", "abc", true},
        {"*b", "abc", false},
        {"a*b*c", "a1b2c", true},
        {"a*b*c", "acb", false},
        {"?", "", false},
        {"?b?", "abc", true},
        {"[a-c]x", "bx", true},
        {"[a-c]x", "dx", false},
        {"[!a-c]x", "dx", true},
        {"[!a-c]x", "ax", false},
        {"[]]", "]", true},
        {"[a-]", "-", true},
        {"n[0-9][0-9]", "n42", true},
        {"n[0-9][0-9]", "n4", false},
        {"*[0-3].0", "0000:17:00.0", true},
        {"**a**", "bab", true},
        {"a.c", "abc", false},
        {"*ab", "aab", true},
        {"*aab*", "aaab", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        cr_expect_eq(policy_glob(cases[i].pattern, cases[i].text),
                     cases[i].matches, "%s %s", cases[i].pattern,
                     cases[i].text);
}

/* Would take years if each '*' tried all there is. */
Test(policy, matches_in_little_time)
{
    char pattern[POLICY_PATTERN_MAX + 1], text[DEMAND_NAME_MAX + 1];
    for (size_t i = 0; i < sizeof pattern - 1; i++)
        pattern[i] = i % 2 ? 'a' : '*';
    pattern[sizeof pattern - 2] = 'b';
    pattern[sizeof pattern - 1] = '\0';
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    cr_expect(!policy_glob(pattern, text));
}

Test(policy, gives_the_first_share_of_a_service)
{
    cleanup_with(policy) struct policy *p = read_ok(
        "{\"services\":[{\"namespace\":\"i\",\"name\":\"x\",\"cores\":1},"
        "{\"namespace\":\"i\",\"name\":\"x\",\"cores\":2,\"models\":\"BF3*\","
        "\"priority\":1}]}");
    struct device card = {.kind = DEVICE_CARD, .model = "BF3 400G"};
    struct demand pod = {.role = ROLE_SERVICE, .namespace = "i", .job = "x"};
    const struct policy_service *s = policy_find_share(p, &pod, "n", &card);
    cr_assert(s);
    cr_expect_eq(s->cores, 2);
    card.model = "BF2";
    s = policy_find_share(p, &pod, "n", &card);
    cr_assert(s);
    cr_expect_eq(s->cores, 1);
    cr_expect(policy_has_share(p, &pod));
    cr_expect(!policy_has_share(NULL, &pod));
    pod.role = ROLE_XPU;
    cr_expect(!policy_has_share(p, &pod));
    cr_expect_null(policy_find_share(p, &pod, "n", &card));
    pod = (struct demand){.role = ROLE_SERVICE, .namespace = "j", .job = "x"};
    cr_expect(!policy_has_share(p, &pod));
}
