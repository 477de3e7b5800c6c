/* Huge pages that pods ask for. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "lib/base/mem.h"
#include "model/pod/podspec.h"

#define MI (UINT64_C(1) << 20)
#define LIMITS(text) ",\"resources\":{\"limits\":{" text "}}"
#define VOLUMES(media) \
    ",\"volumes\":[{\"name\":\"v\",\"emptyDir\":{\"medium\":\"" media "\"}}]"

/* A pod of two containers. */
static int parse(const char *role, const char *init, const char *first,
                 const char *second, const char *more,
                 struct podspec **ret_spec, struct error *err)
{
    cleanup_free char *text = xasprintf(
        "{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"uid\":\"u\","
        "\"labels\":{\"biga.dev/role\":\"%s\"}},\"spec\":{\"initContainers\":"
        "[{\"name\":\"i\",\"image\":\"i\"%s}],\"containers\":["
        "{\"name\":\"a\",\"image\":\"i\"%s},"
        "{\"name\":\"b\",\"image\":\"i\"%s}]%s}}",
        role, init, first, second, more);
    return podspec_parse(text, strlen(text), "", NULL, ret_spec, err);
}

Test(podspec_hugepages, limits_are_per_container_and_add_up)
{
    cleanup_with(podspec) struct podspec *p = NULL;
    struct error err = {0};
    struct hugepages all;
    int e = parse("xpu", LIMITS("\"hugepages-2Mi\":\"64Mi\""),
                  LIMITS("\"hugepages-2Mi\":\"8Mi\",\"cpu\":1"),
                  ",\"resources\":{\"limits\":{\"hugepages-2Mi\":4194304,"
                  "\"hugepages-1Gi\":\"2Gi\"},\"requests\":{"
                  "\"hugepages-2Mi\":\"4Mi\"}}",
                  "", &p, &err);
    cr_assert_eq(e, 0, "%s", err.text);
    cr_expect_eq(hugepages_of(&p->containers[0].hugepages, 2 * MI), 8 * MI);
    cr_expect_eq(hugepages_of(&p->containers[1].hugepages, 2 * MI), 4 * MI);
    cr_expect_eq(hugepages_of(&p->init[0].hugepages, 2 * MI), 64 * MI);
    podspec_hugepages(p, &all);
    cr_expect_eq(all.n, 2u);
    cr_expect_eq(hugepages_of(&all, 2 * MI), 64 * MI);
    cr_expect_eq(hugepages_of(&all, 1024 * MI), 2048 * MI);
}

Test(podspec_hugepages, volumes_have_the_size_that_is_asked_for)
{
    static const char *const media[] = {"HugePages", "HugePages-2Mi"};
    for (size_t i = 0; i < ARRAY_LEN(media); i++) {
        cleanup_with(podspec) struct podspec *p = NULL;
        struct error err = {0};
        cleanup_free char *more = xasprintf(
            ",\"volumes\":[{\"name\":\"v\",\"emptyDir\":{\"medium\":\"%s\"}},"
            "{\"name\":\"w\",\"emptyDir\":{\"medium\":\"\"}}]",
            media[i]);
        int e = parse("service", "", "", LIMITS("\"hugepages-2Mi\":\"8Mi\""),
                      more, &p, &err);
        cr_assert_eq(e, 0, "%s", err.text);
        cr_expect_eq(p->volumes[0].medium, PODSPEC_HUGEPAGES);
        cr_expect_eq(p->volumes[0].page, 2 * MI);
        cr_expect_eq(p->volumes[1].medium, PODSPEC_DISK);
    }
}

Test(podspec_hugepages, what_cannot_be_is_named)
{
    static const struct {
        const char *role, *first, *more, *text;
    } cases[] = {
        {"xpu", LIMITS("\"hugepages-2MB\":\"4Mi\""), "",
         "spec.containers[0].resources.limits: hugepages-2MB: must be"},
        {"xpu", LIMITS("\"hugepages-2Mi\":\"3Mi\""), "",
         "limits: hugepages-2Mi: must be whole pages"},
        {"xpu", LIMITS("\"hugepages-2Mi\":\"500m\""), "",
         "limits: hugepages-2Mi: must be whole pages"},
        {"xpu", LIMITS("\"hugepages-2Mi\":\"many\""), "",
         "limits: hugepages-2Mi: is \"many\""},
        {"xpu",
         LIMITS("\"hugepages-4Ki\":\"1Mi\",\"hugepages-2Mi\":\"2Mi\","
                "\"hugepages-8Mi\":\"8Mi\",\"hugepages-1Gi\":\"1Gi\","
                "\"hugepages-2Gi\":\"2Gi\""),
         "", "limits: hugepages-2Gi: is of one size of pages too many"},
        {"xpu",
         ",\"resources\":{\"requests\":{\"hugepages-2Mi\":\"2Mi\"},"
         "\"limits\":{\"hugepages-2Mi\":\"4Mi\"}}",
         "", "requests: hugepages-2Mi: must be as its limit"},
        {"xpu", ",\"resources\":{\"requests\":{\"hugepages-2Mi\":\"2Mi\"}}", "",
         "requests: hugepages-2Mi: must be as its limit"},
        {"host", LIMITS("\"hugepages-2Mi\":\"4Mi\""), "",
         "limits: hugepages-2Mi: is not given to pods of a host"},
        {"xpu", "", VOLUMES("HugePages"),
         "spec.volumes[0].emptyDir.medium: must be of the size"},
        {"xpu", LIMITS("\"hugepages-2Mi\":\"4Mi\""), VOLUMES("HugePages-1Gi"),
         "spec.volumes[0].emptyDir.medium: must be of the size"},
        {"xpu", LIMITS("\"hugepages-2Mi\":\"4Mi\",\"hugepages-1Gi\":\"1Gi\""),
         VOLUMES("HugePages"),
         "spec.volumes[0].emptyDir.medium: must be of the size"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct podspec *p = NULL;
        struct error err = {0};
        cr_expect_eq(parse(cases[i].role, "", cases[i].first, "", cases[i].more,
                           &p, &err),
                     -EINVAL, "%s", cases[i].text);
        cr_expect(strstr(err.text, cases[i].text), "%s", err.text);
        podspec_destroy(p);
    }
}
