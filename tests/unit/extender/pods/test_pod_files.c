#include "extender/pods/pod_files.h"

#include <criterion/criterion.h>
#include <string.h>

#include "extender/pods/applied_private.h"
#include "lib/base/json.h"
#include "model/pod/podfeed.h"

#define UID "00000000-0000-4000-8000-000000000001"

enum {
    LARGE = 1000000, /* bytes: Kubernetes has them up to 1 MiB */
    PART = 120000,   /* of a value that a variable can have */
    CONFIGS = 3,
};

static struct pod_set *set;

/* ConfigMaps c0, c1 … and a Secret, each with a key "k" and a "large" one. */
static struct applied_config *config(const char *kind, unsigned i)
{
    cleanup_str struct str json = STR_INIT(2 * LARGE);
    struct applied_config *c = NULL;
    struct error err = {0};
    bool secret = strcmp(kind, "Secret") == 0;
    str_addf(&json,
             "{\"apiVersion\":\"v1\",\"kind\":\"%s\",\"metadata\":{\"name\":"
             "\"c%u\",\"namespace\":\"ns\"},\"%s\":{\"k\":\"v%u\",\"large\":\"",
             kind, i, secret ? "stringData" : "data", i);
    for (unsigned n = 0; n < LARGE; n++)
        str_add_c(&json, 'x');
    str_add(&json, "\"}}");
    cr_assert_eq(applied_config_create(json.data, json.size, &c, &err), 0, "%s",
                 err.text);
    return c;
}

static void start(void)
{
    set = xcalloc(1, sizeof *set);
    atomic_init(&set->refs, 1);
    for (unsigned i = 0; i <= CONFIGS; i++) {
        struct applied_config *c = config(i < CONFIGS ? "ConfigMap" : "Secret",
                                          i);
        pod_set_put_config(set, c);
        applied_config_unref(c);
    }
}

static void stop(void)
{
    pod_set_unref(set);
}

TestSuite(pod_files, .init = start, .fini = stop);

static struct applied_pod *pod(const char *volumes, const char *env)
{
    struct applied_pod *p = NULL;
    struct error err = {0};
    struct demand_config demand;
    demand_config_default(&demand);
    cleanup_free char *json = xasprintf(
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\","
        "\"namespace\":\"ns\",\"uid\":\"" UID "\",\"labels\":{\"biga.dev/role\""
        ":\"host\"}},\"spec\":{\"volumes\":[%s],\"containers\":[{\"name\":"
        "\"c\",\"image\":\"i\",%s}]}}",
        volumes, env);
    cr_assert_eq(applied_pod_create(json, strlen(json), UID, &demand, &p, &err),
                 0, "%s", err.text);
    return p;
}

/* Each way to ask for a key. */
#define ITEMS "\"items\":[{\"key\":\"k\",\"path\":\"p\"}]"
#define SOME_VOLUMES                                                           \
    "{\"name\":\"a\",\"configMap\":{\"name\":\"c0\"," ITEMS "}},{\"name\":"    \
    "\"b\",\"projected\":{\"sources\":[{\"configMap\":{\"name\":\"c1\"," ITEMS \
    "}}]}},{\"name\":\"s\",\"secret\":{\"secretName\":\"c3\"," ITEMS "}}"
#define SOME_ENV                                                             \
    "\"env\":[{\"name\":\"A\",\"valueFrom\":{\"configMapKeyRef\":{\"name\":" \
    "\"c2\",\"key\":\"k\"}}},{\"name\":\"B\",\"valueFrom\":{"                \
    "\"configMapKeyRef\":{\"name\":\"c0\",\"key\":\"none\",\"optional\":"    \
    "true}}}]"

Test(pod_files, has_the_keys_that_are_taken)
{
    cleanup_with(applied_pod) struct applied_pod *p = pod(SOME_VOLUMES,
                                                          SOME_ENV);
    cleanup_str struct str out = STR_INIT(STR_MAX_DEFAULT);
    struct error err = {0};
    cr_assert_eq(pod_files_check(set, p, &err), 0, "%s", err.text);
    cr_assert_eq(pod_files_write(set, p, "n", &out, &err), 0, "%s", err.text);
    cr_expect_str_eq(
        str_text(&out),
        "[{\"kind\":\"ConfigMap\",\"name\":\"c0\",\"data\":{\"k\":\"djA=\"}},"
        "{\"kind\":\"ConfigMap\",\"name\":\"c1\",\"data\":{\"k\":\"djE=\"}},"
        "{\"kind\":\"Secret\",\"name\":\"c3\",\"data\":{\"k\":\"djM=\"}},"
        "{\"kind\":\"ConfigMap\",\"name\":\"c2\",\"data\":{\"k\":\"djI=\"}}]");
}

Test(pod_files, whole_config_maps_go_whole)
{
    cleanup_with(applied_pod) struct applied_pod *p =
        pod("{\"name\":\"a\",\"configMap\":{\"name\":\"c0\"}}",
            "\"envFrom\":[{\"configMapRef\":{\"name\":\"c1\"}}]");
    cleanup_str struct str out = STR_INIT(STR_MAX_DEFAULT);
    struct error err = {0};
    cr_assert_eq(pod_files_write(set, p, "n", &out, &err), 0, "%s", err.text);
    cr_expect(strstr(str_text(&out), "\"k\":\"djA=\",\"large\":\"eHh4"));
    cr_expect(strstr(str_text(&out), "\"data\":{\"k\":\"djE=\"}"),
              "what no variable can have is not taken");
    cr_expect_lt(out.size, (size_t)PODFEED_FILES_MAX);
}

static void expect_refused(const struct pod_set *where,
                           const struct applied_pod *p,
                           const struct pod_change *changes, size_t n,
                           const char *size, const char *limit)
{
    cleanup_str struct str out = STR_INIT(STR_MAX_DEFAULT);
    struct error err = {0};
    cr_expect_eq(pod_files_check_size(where, changes, n, &err), -EFBIG);
    cr_expect_eq(err.code, EFBIG);
    cr_expect(strstr(err.text, "Pod ns/p: "), "%s", err.text);
    cr_expect(strstr(err.text, size), "%s", err.text);
    cr_expect(strstr(err.text, limit), "%s", err.text);
    if (where != set)
        return;
    cr_expect_eq(pod_files_check(set, p, &err), -EFBIG);
    cr_expect_eq(pod_files_write(set, p, "n", &out, &err), -EFBIG);
    cr_expect_eq(out.size, 0);
}

Test(pod_files, three_large_volumes_are_refused)
{
    cleanup_with(applied_pod) struct applied_pod *p =
        pod("{\"name\":\"a\",\"configMap\":{\"name\":\"c0\"}},"
            "{\"name\":\"b\",\"configMap\":{\"name\":\"c1\"}},"
            "{\"name\":\"c\",\"configMap\":{\"name\":\"c2\"}}",
            "\"args\":[]");
    const struct pod_change c = {.kind = APPLIED_APPLY, .pod = p};
    expect_refused(set, p, &c, 1, "2000004", "1048576");
}

/* Of variables there is no limit but that of the node. */
static struct applied_config *parts(unsigned i)
{
    cleanup_str struct str json = STR_INIT(2 * LARGE);
    struct applied_config *c = NULL;
    struct error err = {0};
    str_addf(&json,
             "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{"
             "\"name\":\"d%u\",\"namespace\":\"ns\"},\"data\":{\"k\":\"v\"",
             i);
    for (unsigned k = 0; k < LARGE / PART; k++) {
        str_addf(&json, ",\"K%u\":\"", k);
        for (unsigned n = 0; n < PART; n++)
            str_add_c(&json, 'x');
        str_add_c(&json, '"');
    }
    str_add(&json, "}}");
    cr_assert_eq(applied_config_create(json.data, json.size, &c, &err), 0, "%s",
                 err.text);
    return c;
}

Test(pod_files, three_large_sources_of_variables_are_refused)
{
    cleanup_with(applied_pod) struct applied_pod *p = pod(
        "", "\"envFrom\":[{\"configMapRef\":{\"name\":\"d0\"}},{\"prefix\":\"A"
            "\",\"configMapRef\":{\"name\":\"d1\"}},{\"prefix\":\"B\","
            "\"configMapRef\":{\"name\":\"d2\"}}]");
    struct pod_change c[CONFIGS + 1] = {{.kind = APPLIED_APPLY, .pod = p}};
    struct error err = {0};
    cr_expect_eq(pod_files_check(set, p, &err), -ENOENT);
    cr_expect_eq(pod_files_check_size(set, c, 1, &err), 0,
                 "they may come later");
    for (unsigned i = 0; i < CONFIGS; i++)
        c[i + 1] = (struct pod_change){.kind = CONFIG_APPLY,
                                       .config = parts(i)};
    /* one of them is not too much; and the size that is told is right */
    cleanup_with(applied_pod) struct applied_pod *one =
        pod("", "\"envFrom\":[{\"configMapRef\":{\"name\":\"d0\"}}]");
    cleanup_with(json) cJSON *json = NULL;
    cleanup_str struct str out = STR_INIT(STR_MAX_DEFAULT);
    pod_set_put_config(set, c[1].config);
    cr_assert_eq(pod_files_write(set, one, "n", &out, &err), 0, "%s", err.text);
    cr_expect_eq(json_parse(out.data, out.size, &json, &err), 0, "%s",
                 err.text);
    cleanup_free char *size =
        xasprintf("%zu", CONFIGS * (out.size - 2) + 2 + (CONFIGS - 1));
    expect_refused(NULL, p, c, CONFIGS + 1, size, "2097152");
    for (unsigned i = 0; i < CONFIGS; i++)
        pod_set_put_config(set, c[i + 1].config);
    expect_refused(set, p, c, 1, size, "2097152");
    for (unsigned i = 0; i < CONFIGS; i++)
        applied_config_unref(c[i + 1].config);
}
