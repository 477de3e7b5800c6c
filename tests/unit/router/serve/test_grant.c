#include <criterion/criterion.h>
#include <string.h>

#include "router/serve/grant.h"

#define POD                                                       \
    "\"pod\":{\"namespace\":\"ns\",\"name\":\"a\",\"uid\":\"u\"," \
    "\"role\":\"xpu\",\"pair\":0,\"size\":1,\"priority\":0}"
#define CARDS                                                           \
    "\"cards\":[{\"id\":\"card-0000-17-00\",\"pci\":\"0000:17:00.0\"}," \
    "{\"id\":\"card-0000-18-00\"}]"
#define NEED                                                              \
    "\"need\":{\"cards\":1,\"pairCards\":1,\"gpus\":0,\"align\":\"SYS\"," \
    "\"exclusive\":false,\"cores\":4,\"memoryMiB\":512,\"arch\":\"arm64\"}"
#define WHOLE "{" POD ",\"node\":\"n1\"," CARDS "," NEED "}"

static const struct grant_pod pod = {"ns", "a", "u", "n1"};

static int read_text(const char *json, const struct grant_pod *whose,
                     struct grant *ret, struct error *err)
{
    *err = (struct error){0};
    return grant_read(json, strlen(json), whose, ret, err);
}

Test(grant, the_first_card_is_where_it_runs)
{
    struct grant g;
    struct error err;
    cr_assert_eq(read_text(WHOLE, &pod, &g, &err), 0, "%s", err.text);
    cr_assert(g.remote);
    cr_assert_eq(g.n_cards, 2);
    cr_assert_str_eq(g.card, "card-0000-17-00");
    cr_assert_str_eq(g.pci, "0000:17:00.0");
    cr_assert_eq(g.cores, 4);
    cr_assert_eq(g.memory_mib, 512);
    cr_assert_str_eq(g.arch, "arm64");
}

Test(grant, host_pods_have_one_too)
{
    struct grant g;
    struct error err;
    const char *json = "{\"pod\":{\"namespace\":\"ns\",\"name\":\"a\","
                       "\"role\":\"host\"},\"node\":\"n1\"," CARDS "}";
    cr_assert_eq(read_text(json, &pod, &g, &err), 0, "%s", err.text);
    cr_assert_not(g.remote);
    cr_assert_eq(g.cores, 0);
}

Test(grant, of_another_pod_it_does_not_count)
{
    static const struct {
        struct grant_pod pod;
        const char *said;
    } tries[] = {
        {{"other", "a", "u", "n1"}, "pod.namespace: is \"ns\""},
        {{"ns", "b", "u", "n1"}, "pod.name: is \"a\""},
        {{"ns", "a", "v", "n1"}, "pod.uid: is \"u\""},
        {{"ns", "a", "u", "n2"}, "node: is \"n1\""},
    };
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        struct grant g;
        struct error err;
        cr_assert_eq(read_text(WHOLE, &tries[i].pod, &g, &err), -EINVAL);
        cr_assert(strstr(err.text, tries[i].said), "%s", err.text);
    }
}

Test(grant, what_is_not_known_is_not_compared)
{
    struct grant g;
    struct error err;
    const struct grant_pod nobody = {"", "", "", "n1"};
    cr_assert_eq(read_text(WHOLE, &nobody, &g, &err), 0, "%s", err.text);
}

Test(grant, what_is_wrong_is_named)
{
    static const char *const tries[][2] = {
        {"{", "line 1"},
        {"[]", "line 1"},
        {"{\"pod\":{\"role\":\"king\"}}", "pod.role: is \"king\""},
        {"{\"pod\":{\"role\":\"xpu\"},\"need\":{\"cores\":-1}}",
         "need.cores: must be"},
        {"{\"pod\":{\"role\":\"xpu\"},\"need\":{\"memoryMiB\":4294967296}}",
         "need.memoryMiB: must be"},
        {"{\"pod\":{\"role\":\"much-too-long\"}}", "line 1"},
    };
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        struct grant g;
        struct error err;
        cr_assert_eq(read_text(tries[i][0], &pod, &g, &err), -EINVAL);
        cr_assert(strstr(err.text, tries[i][1]), "%s", err.text);
        cr_assert_eq(strncmp(err.text, "biga.dev/allocation: ", 21), 0, "%s",
                     err.text);
    }
}

Test(grant, its_size_has_a_cap)
{
    struct grant g;
    struct error err = {0};
    static char big[GRANT_SIZE_MAX + 1];
    memset(big, ' ', sizeof big);
    cr_assert_eq(grant_read(big, sizeof big, &pod, &g, &err), -EINVAL);
    cr_assert(strstr(err.text, "the limit is"), "%s", err.text);
}
