/* What pods need of nodes: read, compared, and written again with a pin. */
#include "extender/fit/pod_needs.h"

#include <criterion/criterion.h>
#include <string.h>

#include "extender/fit/node_facts.h"
#include "extender/fit/node_match.h"
#include "lib/base/json.h"
#include "tests/lib/podtext.h"

static int try_spec(const char *spec, struct pod_needs **ret, struct error *err)
{
    cleanup_free char *text = xasprintf("{'spec':{%s}}", spec);
    cleanup_free char *json = pod_quoted(text);
    return pod_needs_read(json, strlen(json), ret, err);
}

static struct pod_needs *read_spec(const char *spec)
{
    struct pod_needs *n = NULL;
    struct error err = {0};
    cr_assert_eq(try_spec(spec, &n, &err), 0, "%s: %s", spec, err.text);
    return n;
}

#define TERMS(list)                                                        \
    "'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringEx" \
    "ecution':{'nodeSelectorTerms':[" list "]}}}"

/* --- matching ----------------------------------------------------------- */

/* On node n1 with a=1, b= and zone=z. */
static bool fits(const char *spec)
{
    static const char node[] =
        "{\"metadata\":{\"name\":\"n1\",\"labels\":{\"zone\":\"z\",\"b\":\"\","
        "\"a\":\"1\"}}}";
    cleanup_with(pod_needs) struct pod_needs *n = read_spec(spec);
    struct node_facts facts;
    cr_assert_eq(node_facts_read(node, sizeof node - 1, &facts, NULL), 0);
    struct node_match m = {facts.name, facts.labels, facts.n_labels, false};
    bool does = node_match_labels(&m, n);
    node_facts_fini(&facts);
    return does;
}

static bool meets(const char *requirement)
{
    cleanup_free char *spec = xasprintf(TERMS("{'matchExpressions':[{%s}]}"),
                                        requirement);
    return fits(spec);
}

Test(pod_needs, a_node_selector)
{
    cr_expect(fits(""));
    cr_expect(fits("'nodeSelector':{}"));
    cr_expect(fits("'nodeSelector':null,'affinity':null"));
    cr_expect(fits("'nodeSelector':{'a':'1','b':''}"));
    cr_expect_not(fits("'nodeSelector':{'a':'1','c':''}"));
    cr_expect_not(fits("'nodeSelector':{'a':'2'}"));
}

Test(pod_needs, requirements_of_labels)
{
    cr_expect(meets("'key':'a','operator':'In','values':['2','1']"));
    cr_expect_not(meets("'key':'a','operator':'In','values':['2']"));
    cr_expect_not(meets("'key':'c','operator':'In','values':['']"));
    cr_expect(meets("'key':'a','operator':'NotIn','values':['2']"));
    cr_expect(meets("'key':'c','operator':'NotIn','values':['2']"));
    cr_expect_not(meets("'key':'a','operator':'NotIn','values':['1','2']"));
    cr_expect(meets("'key':'b','operator':'Exists'"));
    cr_expect_not(meets("'key':'c','operator':'Exists'"));
    cr_expect(meets("'key':'c','operator':'DoesNotExist'"));
    cr_expect_not(meets("'key':'b','operator':'DoesNotExist'"));
    cr_expect(meets("'key':'a','operator':'Gt','values':['0']"));
    cr_expect_not(meets("'key':'a','operator':'Gt','values':['1']"));
    cr_expect(meets("'key':'a','operator':'Lt','values':['+2']"));
    cr_expect_not(meets("'key':'zone','operator':'Lt','values':['2']"));
    cr_expect_not(meets("'key':'c','operator':'Lt','values':['2']"));
}

Test(pod_needs, what_is_unsound_is_met_nowhere)
{
    cr_expect_not(meets("'key':'a','operator':'In','values':[]"));
    cr_expect_not(meets("'key':'c','operator':'NotIn'"));
    cr_expect_not(meets("'key':'a','operator':'Exists','values':['1']"));
    cr_expect_not(meets("'key':'a','operator':'Gt','values':['0','0']"));
    cr_expect_not(meets("'key':'a','operator':'Gt','values':['x']"));
    cr_expect_not(
        meets("'key':'a','operator':'Gt','values':['-9223372036854775809']"));
    cr_expect(
        meets("'key':'a','operator':'Gt','values':['-9223372036854775808']"));
    cr_expect_not(meets("'key':'a','operator':'in','values':['1']"));
    cr_expect_not(meets("'key':'a'"));
}

Test(pod_needs, terms_are_alternatives)
{
#define IN(key, value) \
    "{'key':'" key "','operator':'In','values':['" value "']}"
#define NOT_IN(key, value) \
    "{'key':'" key "','operator':'NotIn','values':['" value "']}"
    cr_expect(fits(TERMS("{'matchExpressions':[" IN(
        "a", "2") "]},"
                  "{'matchExpressions':[" IN("a", "1") "]}")));
    cr_expect_not(fits(
        TERMS("{'matchExpressions':[" IN("a", "1") "," IN("zone", "y") "]}")));
    cr_expect_not(fits(TERMS("")));
    cr_expect_not(fits(TERMS("{}")));
    cr_expect_not(fits(TERMS("{'matchExpressions':[],'matchFields':null}")));
    cr_expect(fits(TERMS("{'matchFields':[" IN("metadata.name", "n1") "]}")));
    cr_expect_not(
        fits(TERMS("{'matchFields':[" IN("metadata.name", "n2") "]}")));
    cr_expect(
        fits(TERMS("{'matchFields':[" NOT_IN("metadata.name", "n2") "]}")));
    cr_expect_not(fits(TERMS("{'matchExpressions':[" IN(
        "a", "2") "],'matchFields':[" IN("metadata.name", "n1") "]}")));
    cr_expect_not(fits("'nodeSelector':{'a':'2'}," TERMS(
        "{'matchExpressions':[" IN("a", "1") "]}")));
}

static bool tolerates(const char *toleration, const char *effect)
{
    cleanup_free char *spec = xasprintf("'tolerations':[{%s}]", toleration);
    cleanup_with(pod_needs) struct pod_needs *n = read_spec(spec);
    const struct node_taint taint = {"k", "5", effect};
    return !node_match_taints(&taint, 1, n);
}

Test(pod_needs, tolerations)
{
    cr_expect(tolerates("'operator':'Exists'", "NoExecute"));
    cr_expect(tolerates("'key':'k','operator':'Exists'", "NoSchedule"));
    cr_expect(tolerates("'key':'k','value':'5'", "NoSchedule"));
    cr_expect(tolerates("'key':'k','value':'5','operator':'Equal',"
                        "'effect':'NoSchedule'",
                        "NoSchedule"));
    cr_expect_not(
        tolerates("'key':'k','value':'5','effect':'NoSchedule'", "NoExecute"));
    cr_expect_not(tolerates("'key':'k','value':'6'", "NoSchedule"));
    cr_expect_not(tolerates("'key':'k'", "NoSchedule"));
    cr_expect_not(tolerates("'key':'l','operator':'Exists'", "NoSchedule"));
    cr_expect(tolerates("'key':'k','operator':'Lt','value':'6'", "NoSchedule"));
    cr_expect_not(
        tolerates("'key':'k','operator':'Gt','value':'5'", "NoSchedule"));
    cr_expect(tolerates("'key':'k','operator':'Gt','value':'4'", "NoSchedule"));
    cr_expect_not(
        tolerates("'key':'k','operator':'Never','value':'5'", "NoSchedule"));
}

/* --- the pin ------------------------------------------------------------ */

static void pinned(const char *spec, const char *want_terms)
{
    cleanup_with(pod_needs) struct pod_needs *n = read_spec(spec);
    cleanup_str struct str got = STR_INIT(65536);
    cleanup_free char *want_text = xasprintf(
        "{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':"
        "{'nodeSelectorTerms':[%s]}}}",
        want_terms);
    cleanup_free char *want = pod_quoted(want_text);
    pod_needs_write_affinity(n, "n1", &got);
    cr_expect_str_eq(str_text(&got), want);
}

#define PIN IN("metadata.name", "n1")

Test(pod_needs, a_pin_only_narrows)
{
    pinned("", "{'matchFields':[" PIN "]}");
    pinned("'affinity':{'podAffinity':{}}", "{'matchFields':[" PIN "]}");
    pinned(TERMS("{'matchExpressions':[" IN("a", "1") "]}"),
           "{'matchExpressions':[" IN("a", "1") "],'matchFields':[" PIN "]}");
    pinned(TERMS("{'matchFields':[" NOT_IN("metadata.name", "n2") "]},{}"),
           "{'matchFields':[" NOT_IN("metadata.name", "n2") "," PIN "]},{}");
    pinned(TERMS("{'matchFields':[" PIN "]}"), "{'matchFields':[" PIN "]}");
    pinned(TERMS("{'matchFields':[" IN("metadata.name", "n2") "\n]}"),
           "{'matchFields':[" IN("metadata.name", "n2") "\n," PIN "]}");
}

/* --- the whole ---------------------------------------------------------- */

Test(pod_needs, equal_needs_are_equal)
{
    static const char *const specs[] = {
        "",
        "'nodeSelector':{'a':'1'}",
        "'nodeSelector':{'a':'2'}",
        "'tolerations':[{'key':'k','operator':'Exists'}]",
        "'tolerations':[{'key':'k','value':'Exists'}]",
        TERMS(""),
        TERMS("{}"),
        TERMS("{'matchFields':[" PIN "]}"),
        TERMS("{'matchExpressions':[" PIN "]}"),
        "'containers':[{'resources':{'requests':{'cpu':'1'}}}]",
        "'containers':[{'resources':{'requests':{'cpu':'2'}}}]",
        "'containers':[{'ports':[{'hostPort':1}]}]",
        "'containers':[{'ports':[{'hostPort':1,'protocol':'UDP'}]}]",
        "'volumes':[{'persistentVolumeClaim':{}}]",
    };
    for (size_t i = 0; i < ARRAY_LEN(specs); i++)
        for (size_t k = 0; k < ARRAY_LEN(specs); k++) {
            cleanup_with(pod_needs) struct pod_needs *a = read_spec(specs[i]);
            cleanup_with(pod_needs) struct pod_needs *b = read_spec(specs[k]);
            cr_expect_eq(pod_needs_equal(a, b), i == k, "%s, %s", specs[i],
                         specs[k]);
            cr_expect_eq(a->hash == b->hash, i == k);
        }
}

static void unjudged(const char *spec, const char *want)
{
    cleanup_with(pod_needs) struct pod_needs *n = read_spec(spec);
    cleanup_str struct str got = STR_INIT(65536);
    pod_needs_write_unjudged(n, &got);
    cr_expect_str_eq(str_text(&got), want, "%s", spec);
}

Test(pod_needs, what_is_not_judged_is_said)
{
#define PODS(list) \
    "{'requiredDuringSchedulingIgnoredDuringExecution':[" list "]}"
    unjudged("'topologySpreadConstraints':[{'whenUnsatisfiable':"
             "'ScheduleAnyway'}],'affinity':{'podAffinity':" PODS("") "}",
             "");
    unjudged("'topologySpreadConstraints':[{'whenUnsatisfiable':"
             "'DoNotSchedule'}]",
             "topology spread constraints");
    unjudged("'affinity':{'podAntiAffinity':" PODS(
                 "{}") "},'volumes':[{'emptyDir':{}},{'ephemeral':{}}]",
             "required affinity or anti-affinity to pods, claims of volumes");
}

static void refused(const char *spec, const char *why)
{
    struct pod_needs *n = NULL;
    struct error err = {0};
    cr_assert_eq(try_spec(spec, &n, &err), -EINVAL);
    cr_expect_null(n);
    cr_expect_neq(strstr(err.text, why), NULL, "%s", err.text);
}

static void too_many(const char *before, const char *each, unsigned max,
                     const char *after, const char *why)
{
    for (unsigned more = 0; more < 2; more++) {
        cleanup_str struct str spec = STR_INIT(4 << 20);
        str_add(&spec, before);
        for (unsigned i = 0; i < max + more; i++)
            str_addf(&spec, "%s%s", i ? "," : "", each);
        str_add(&spec, after);
        if (more)
            refused(str_text(&spec), why);
        else
            pod_needs_unref(read_spec(str_text(&spec)));
    }
}

Test(pod_needs, what_is_beyond_the_caps_is_refused)
{
    too_many("'tolerations':[", "{}", POD_NEEDS_TOLERATIONS_MAX, "]",
             "spec.tolerations: more than 256");
    too_many("'nodeSelector':{", "'a':''", POD_NEEDS_SELECTOR_MAX, "}",
             "spec.nodeSelector: more than 64");
    too_many("'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnored"
             "DuringExecution':{'nodeSelectorTerms':[",
             "{'matchFields':[" PIN "]}", POD_NEEDS_TERMS_MAX, "]}}}",
             "more than 32 terms");
    too_many("'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnored"
             "DuringExecution':{'nodeSelectorTerms':[{'matchExpressions':[",
             PIN, POD_NEEDS_REQUIREMENTS_MAX, "]}]}}}",
             "more than 64 requirements");
    too_many("'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnored"
             "DuringExecution':{'nodeSelectorTerms':[{'matchExpressions':["
             "{'key':'a','operator':'In','values':[",
             "'v'", POD_NEEDS_VALUES_MAX, "]}]}]}}}", "more than 16384 values");
    refused("'tolerations':{}", "");
    refused("'nodeSelector':{'a':1}", "");
    refused("'affinity':[]", "");
}
