#include "extender/jobs/pod_documents.h"

#include <criterion/criterion.h>
#include <string.h>

#include "extender/pods/buddy.h"
#include "lib/base/json.h"

static struct demand_config config;

static void start(void)
{
    demand_config_default(&config);
}

TestSuite(pod_documents, .init = start);

static int make(const char *text, size_t max, struct str *out,
                struct error *err)
{
    *out = STR_INIT(1 << 20);
    return pod_documents_make(text, strlen(text), &config, max, out, err);
}

#define CONTAINERS "\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]"
#define POD \
    "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\"},\"spec\":{" CONTAINERS "}}"
#define JOB(notes)                                                           \
    "{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"metadata\":{\"name\":"  \
    "\"ring\"},\"spec\":{\"completionMode\":\"Indexed\",\"completions\":2,"  \
    "\"parallelism\":2,\"template\":{\"metadata\":{\"labels\":{"             \
    "\"biga.dev/role\":\"host\"},\"annotations\":{" notes "}},\"spec\":{"    \
    "\"restartPolicy\":\"Never\",\"nodeSelector\":{\"a\":\"b\"}," CONTAINERS \
    "}}}}"
#define TEMPLATE                                                             \
    "{\"kind\":\"PodTemplate\",\"metadata\":{\"name\":\"t\"},\"template\":{" \
    "\"spec\":{" CONTAINERS "}}}"

Test(pod_documents, what_needs_no_making_is_left_alone)
{
    static const struct {
        const char *text;
        bool needs;
    } cases[] = {
        {POD, false},          {"[" POD "," POD "]", false},
        {POD "\n \t", false},  {POD "\n" POD, true},
        {JOB(""), true},       {"{\"items\":[" JOB("") "]}", true},
        {TEMPLATE POD, true},  {"", false},
        {"{\"kind\":", false}, {"[] []", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        cr_expect_eq(
            pod_documents_need_making(cases[i].text, strlen(cases[i].text)),
            cases[i].needs, "%s", cases[i].text);
}

/* The names of the pods, with a space behind each. */
static const char *names(const struct str *list)
{
    static char text[256];
    cleanup_with(json) cJSON *json = NULL;
    struct error err;
    const cJSON *x;
    text[0] = '\0';
    cr_assert_eq(json_parse(str_text(list), list->size, &json, &err), 0, "%s",
                 err.text);
    cJSON_ArrayForEach(x, json)
    {
        const cJSON *m = cJSON_GetObjectItemCaseSensitive(x, "metadata");
        size_t n = strlen(text);
        (void)snprintf(
            text + n, sizeof text - n, "%s ",
            cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(m, "name")));
    }
    return text;
}

Test(pod_documents, pods_of_all_that_pods_come_of)
{
    static const struct {
        const char *text, *pods;
    } cases[] = {
        {POD "\n" POD, "p p "},
        {JOB(""), "ring-0 ring-1 "},
        {JOB("\"biga.dev/buddy\":\"t\"") TEMPLATE,
         "ring-0 ring-0-xpu ring-1 ring-1-xpu "},
        {JOB("\"biga.dev/buddy\":\"t\""), "ring-0 ring-1 "},
        {"{\"kind\":\"List\",\"items\":[" TEMPLATE "," POD
         ",{\"kind\":\"Service\",\"metadata\":{\"name\":\"s\"}}," JOB("") "]}",
         "p ring-0 ring-1 "},
        {"{\"kind\":\"Pod\",\"metadata\":{\"name\":\"h\",\"labels\":{"
         "\"biga.dev/role\":\"host\"},\"annotations\":{\"biga.dev/buddy\":"
         "\"t\"}},\"spec\":{" CONTAINERS "}}" TEMPLATE,
         "h h-xpu "},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_str struct str out;
        struct error err = {0};
        cr_assert_eq(make(cases[i].text, 100, &out, &err), 0, "%s", err.text);
        cr_expect_str_eq(names(&out), cases[i].pods);
    }
}

Test(pod_documents, what_is_wrong_is_named_with_its_document)
{
    static const struct {
        const char *text, *what;
    } bad[] = {
        {POD "{\"kind\":\"Job\",\"metadata\":{\"name\":\"j\"}}",
         "document 2 (Job default/j): apiVersion: required"},
        {POD " {", "line 1"},
        {POD " []", "document 2: must be an object"},
        {POD "{\"items\":[" POD ",{\"apiVersion\":\"batch/v1\",\"kind\":"
             "\"Job\"}]}",
         "document 2, items[1] (Job default/): spec"},
        {POD POD POD, "document 3 (Pod default/p): more than 2 pods"},
        {JOB("\"biga.dev/buddy\":\"t\"") "{\"kind\":\"PodTemplate\","
                                         "\"metadata\":{\"name\":\"t\"}}",
         "PodTemplate t: template: must be an object"},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        cleanup_str struct str out;
        struct error err = {0};
        cr_expect_lt(make(bad[i].text, 2, &out, &err), 0, "%s", bad[i].text);
        cr_expect(strstr(err.text, bad[i].what), "%s: no %s", err.text,
                  bad[i].what);
    }
}

Test(pod_documents, has_no_more_templates_than_pods_can_look_through)
{
    struct str out;
    struct error err = {0};
    cleanup_str struct str text = STR_INIT(1 << 20);
    for (int i = 0; i < BUDDY_TEMPLATES_MAX; i++)
        str_add(&text, TEMPLATE);
    cr_expect_eq(make(str_text(&text), 9, &out, &err), 0, "%s", err.text);
    str_fini(&out);
    str_add(&text, TEMPLATE);
    cr_expect_eq(make(str_text(&text), 9, &out, &err), -EINVAL);
    cr_expect_str_eq(err.text, "document 4097 (PodTemplate default/t): more "
                               "than 4096 PodTemplates at once");
    str_fini(&out);
}

Test(pod_documents, has_no_larger_template_than_pods_can_read)
{
    struct str out;
    struct error err = {0};
    cleanup_str struct str text = STR_INIT(2 << 20);
    str_add(&text, "{\"kind\":\"PodTemplate\",\"metadata\":{\"name\":"
                   "\"t\",\"annotations\":{\"note\":\"");
    for (size_t i = 0; i < BUDDY_TEMPLATE_SIZE_MAX; i++)
        str_add_c(&text, 'n');
    str_add(&text, "\"}}}");
    cr_expect_eq(make(str_text(&text), 9, &out, &err), -EINVAL);
    cr_expect(strstr(err.text, "is a PodTemplate of 10486"), "%s", err.text);
    cr_expect(strstr(err.text, "at most 1048576 are allowed"), "%s", err.text);
    str_fini(&out);
}
