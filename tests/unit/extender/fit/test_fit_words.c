/* What is said of nodes: words, counts, and when it is worth asking again. */
#include "extender/fit/fit_nodes.h"

#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/base/str.h"
#include "tests/lib/podtext.h"

enum { MANY = 100000 };

static void put_text(struct fit_nodes *r, const char *text)
{
    struct error err = {0};
    cleanup_free char *json = pod_quoted(text);
    cr_assert_eq(fit_nodes_put(r, json, strlen(json), &err), 0, "%s", err.text);
}

static struct pod_needs *read_text(const char *text)
{
    struct pod_needs *needs = NULL;
    cleanup_free char *json = pod_quoted(text);
    cr_assert_eq(pod_needs_read(json, strlen(json), &needs, NULL), 0);
    return needs;
}

static void explained(struct fit_nodes *r, const char *pod, const char *want)
{
    static const char *const nodes[] = {"a", "b", "c", "d", "e", "none"};
    cleanup_with(pod_needs) struct pod_needs *needs = read_text(pod);
    cleanup_str struct str got = STR_INIT(65536);
    fit_nodes_explain(r, needs, nodes, ARRAY_LEN(nodes), &got);
    cr_expect_str_eq(str_text(&got), want, "%s", str_text(&got));
}

#define GPUS(n) \
    "{'spec':{'containers':[{'resources':{'requests':{'x/gpu':'" #n "'}}}]}}"

Test(fit_words, are_counted_in_words)
{
    struct fit_nodes *r = fit_nodes_create();
#define NODE(name, spec, room)                           \
    "{'metadata':{'name':'" name "'},'spec':{" spec "}," \
    "'status':{'allocatable':{" room "}}}"
#define TAINT "'taints':[{'key':'k','value':'v','effect':'NoExecute'}]"
    put_text(r, NODE("a", TAINT, "'pods':'1'"));
    put_text(r, NODE("b", TAINT, "'pods':'2'"));
    put_text(r, NODE("c", "'unschedulable':true," TAINT, ""));
    put_text(r, NODE("d", "", "'x/gpu':'1'"));
    put_text(r, NODE("e", "", "'x/gpu':'2','pods':'9'"));
    explained(r, GPUS(2),
              "1/6 nodes are available: 2 node(s) had untolerated taint(s) "
              "{k: v}, 1 node(s) were not there, 1 node(s) were unschedulable, "
              "1 Insufficient x/gpu, 1 Too many pods");
    explained(r, GPUS(3),
              "0/6 nodes are available: 2 node(s) had untolerated taint(s) "
              "{k: v}, 2 Insufficient x/gpu, 1 node(s) were not there, "
              "1 node(s) were unschedulable, 1 Too many pods");
    fit_nodes_destroy(r);
}

Test(fit_words, leave_to_classes_what_nodes_have_not)
{
    static const char *const by_class[] = {"x/gpu"};
    cleanup_with(pod_needs) struct pod_needs *needs = read_text(GPUS(3));
    struct fit_nodes *r = fit_nodes_create();
    put_text(r, NODE("a", "", "'pods':'5'"));
    put_text(r, NODE("b", "", "'pods':'5','x/gpu':'2'"));
    cr_expect_eq(fit_nodes_judge(r, needs, "a", NULL), FIT_RESOURCES);
    uint64_t version = fit_nodes_version(r);
    fit_nodes_set_by_class(r, by_class, 1);
    cr_expect_gt(fit_nodes_version(r), version);
    cr_expect_eq(fit_nodes_judge(r, needs, "a", NULL), FIT_OK);
    cr_expect_eq(fit_nodes_room(r, needs, "a"), 5);
    cr_expect_eq(fit_nodes_judge(r, needs, "b", NULL), FIT_RESOURCES);
    fit_nodes_set_by_class(r, NULL, 0);
    cr_expect_eq(fit_nodes_judge(r, needs, "a", NULL), FIT_RESOURCES);
    fit_nodes_destroy(r);
}

Test(fit_words, that_are_told_again_change_nothing)
{
    static const char pod[] =
        "{\"spec\":{\"containers\":[{\"resources\":{\"requests\":{\"cpu\":1}}}"
        "]}}";
    const struct fit_pod is = {"u", "a", false, pod, sizeof pod - 1};
    struct fit_nodes *r = fit_nodes_create();
    put_text(r, NODE("a", "", "'pods':'5'"));
    cr_assert_eq(fit_nodes_put_pod(r, FIT_ROLES, &is, NULL), 0);
    uint64_t version = fit_nodes_version(r);
    put_text(r, NODE("a", "", "'pods':'5'"));
    cr_assert_eq(fit_nodes_put_pod(r, FIT_ROLES, &is, NULL), 0);
    cr_expect_eq(fit_nodes_version(r), version);
    put_text(r, NODE("a", "", "'pods':'6'"));
    cr_expect_gt(fit_nodes_version(r), version);
    version = fit_nodes_version(r);
    fit_nodes_gone_pod(r, FIT_ROLES, "u");
    cr_expect_gt(fit_nodes_version(r), version);
    fit_nodes_destroy(r);
}

Test(fit_words, that_cannot_be_read_are_refused)
{
    struct error err = {0};
    struct fit_nodes *r = fit_nodes_create();
    cr_expect_eq(fit_nodes_put(r, "{}", 2, &err), -EINVAL);
    cr_expect_neq(strstr(err.text, "metadata.name"), NULL);
    const struct fit_pod is = {"u", "a", false, "{", 1};
    cr_expect_eq(fit_nodes_put_pod(r, FIT_OTHERS, &is, &err), -EINVAL);
    put_text(r, NODE("a", "", "'pods':'1'"));
    cleanup_with(pod_needs) struct pod_needs *needs = read_text("{}");
    cr_expect_eq(fit_nodes_judge(r, needs, "a", NULL), FIT_RESOURCES,
                 "it is one of the number");
    fit_nodes_destroy(r);
}

/* A hundred thousand nodes of few kinds, and of one kind each. */
static void put_many(struct fit_nodes *r, bool alike)
{
    for (unsigned i = 0; i < MANY; i++) {
        cleanup_free char *text =
            xasprintf("{'metadata':{'name':'node-%u','labels':{"
                      "'kubernetes.io/hostname':'node-%u','zone':'z%u',"
                      "'seen':'%u','kubernetes.io/os':'linux'}},'spec':{},"
                      "'status':{'allocatable':{'cpu':'128','memory':'1Ti',"
                      "'pods':'110','nvidia.com/gpu':'8'}}}",
                      i, i, i % 8, alike ? 0 : i);
        put_text(r, text);
    }
}

static void ask_many(bool alike)
{
    static char names[MANY][16];
    static const char *all[MANY];
    static enum fit_reason reasons[MANY];
    struct timespec before, after;
    cleanup_with(pod_needs) struct pod_needs *needs = read_text(
        "{'spec':{'nodeSelector':{'zone':'z1','kubernetes.io/os':"
        "'linux'},'containers':[{'resources':{'requests':{'cpu':'1',"
        "'nvidia.com/gpu':'8'}}}]}}");
    struct fit_nodes *r = fit_nodes_create();
    put_many(r, alike);
    for (unsigned i = 0; i < MANY; i++) {
        (void)snprintf(names[i], sizeof names[i], "node-%u", i);
        all[i] = names[i];
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &before);
    size_t n = fit_nodes_judge_all(r, needs, all, MANY, reasons);
    (void)clock_gettime(CLOCK_MONOTONIC, &after);
    cr_expect_eq(n, MANY / 8);
    cr_log_info("%d nodes %s in %.1f ms", MANY, alike ? "alike" : "apart",
                (double)(after.tv_sec - before.tv_sec) * 1e3 +
                    (double)(after.tv_nsec - before.tv_nsec) / 1e6);
    fit_nodes_destroy(r);
}

Test(fit_words, are_asked_all_at_once, .timeout = 300)
{
    ask_many(true);
    ask_many(false);
}
