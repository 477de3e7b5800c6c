/* What pods take, summed as kube-scheduler sums it. */
#include "extender/fit/pod_takes.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/str.h"
#include "tests/lib/podtext.h"

static struct pod_takes read_spec(const char *spec)
{
    cleanup_free char *text = xasprintf("{'spec':{%s}}", spec);
    cleanup_free char *json = pod_quoted(text);
    struct pod_takes takes;
    struct error err = {0};
    cr_assert_eq(pod_takes_read(json, strlen(json), &takes, &err), 0, "%s",
                 err.text);
    return takes;
}

/* "cpu=100 memory=5 :8080/T@0.0.0.0" */
static void expect(const char *spec, const char *want)
{
    struct pod_takes t = read_spec(spec);
    cleanup_str struct str got = STR_INIT(65536);
    for (size_t i = 0; i < t.n_amounts; i++)
        str_addf(&got, "%s%s=%lld", got.size ? " " : "", t.amounts[i].resource,
                 (long long)t.amounts[i].amount);
    for (size_t i = 0; i < t.n_ports; i++)
        str_addf(&got, "%s:%u/%c@%s", got.size ? " " : "", t.ports[i].port,
                 t.ports[i].protocol, t.ports[i].ip);
    cr_expect_str_eq(str_text(&got), want, "%s: %s", spec, str_text(&got));
    cr_expect_null(t.more);
    pod_takes_fini(&t);
}

#define ASKS(list) "{'resources':{'requests':{" list "}}}"

Test(pod_takes, containers_are_summed)
{
    expect("", "");
    expect(
        "'containers':[" ASKS("'cpu':'100m','memory':'1Ki'") "," ASKS(
            "'cpu':1,'nvidia.com/gpu':'2'") "," ASKS("'nvidia.com/gpu':1") "]",
        "cpu=1100 memory=1024 nvidia.com/gpu=3");
    expect("'containers':[" ASKS("'memory':'1500m','cpu':'1n'") "]",
           "cpu=1 memory=2");
    expect("'containers':[" ASKS("'cpu':'0','a/b':'0'") "]", "");
    expect("'containers':[" ASKS("'pods':'3','storage':'1','what':'1',"
                                 "'hugepages-2Mi':'4Mi','a/b':'x'") "]",
           "hugepages-2Mi=4194304");
}

Test(pod_takes, init_containers_run_beside_the_sidecars_before_them)
{
#define SIDECAR(list)                                          \
    "{'restartPolicy':'Always','resources':{'requests':{" list \
    "}},'ports':[{'hostPort':9}]}"
    expect(
        "'containers':[" ASKS("'a/b':'1'") "],'initContainers':[" ASKS(
            "'a/b':'4','c/d':'1'") "," SIDECAR("'a/b':'2'") "," ASKS("'a/"
                                                                     "b':'"
                                                                     "3'") "]",
        "a/b=5 c/d=1 :9/T@0.0.0.0");
    expect("'containers':[" ASKS("'a/b':'3'") "],'initContainers':[" SIDECAR(
               "'a/b':'2'") "]",
           "a/b=5 :9/T@0.0.0.0");
}

Test(pod_takes, a_pod_may_say_it_as_a_whole)
{
    expect("'resources':{'requests':{'cpu':'3','hugepages-1Gi':'1Gi',"
           "'a/b':'7','ephemeral-storage':'1'}},'overhead':{'cpu':'250m',"
           "'c/d':'1'},'containers':[" ASKS(
               "'cpu':'1','memory':'1','a/b':'1'") "]",
           "a/b=1 c/d=1 cpu=3250 hugepages-1Gi=1073741824 memory=1");
}

Test(pod_takes, host_ports)
{
    expect("'containers':[{'ports':[{'containerPort':80},{'hostPort':80},"
           "{'hostPort':81,'protocol':'UDP','hostIP':'10.0.0.1'},"
           "{'hostPort':70000},{'hostPort':'1'}]}],"
           "'initContainers':[{'ports':[{'hostPort':82}]}]",
           ":80/T@0.0.0.0 :81/U@10.0.0.1");
}

static bool clash(const char *a, const char *b)
{
    cleanup_free char *x = xasprintf("'containers':[{'ports':[{%s}]}]", a);
    cleanup_free char *y = xasprintf("'containers':[{'ports':[{%s}]}]", b);
    struct pod_takes one = read_spec(x), two = read_spec(y);
    bool does = pod_takes_ports_clash(&one, &two);
    cr_expect_eq(pod_takes_ports_clash(&two, &one), does);
    pod_takes_fini(&one);
    pod_takes_fini(&two);
    return does;
}

Test(pod_takes, host_ports_clash)
{
    cr_expect(clash("'hostPort':1", "'hostPort':1"));
    cr_expect(clash("'hostPort':1,'hostIP':'10.0.0.1'", "'hostPort':1"));
    cr_expect(clash("'hostPort':1,'hostIP':'10.0.0.1'",
                    "'hostPort':1,'hostIP':'10.0.0.1'"));
    cr_expect_not(clash("'hostPort':1,'hostIP':'10.0.0.1'",
                        "'hostPort':1,'hostIP':'10.0.0.2'"));
    cr_expect_not(clash("'hostPort':1", "'hostPort':2"));
    cr_expect_not(clash("'hostPort':1", "'hostPort':1,'protocol':'UDP'"));
    cr_expect_not(clash("", "'hostPort':1"));
}

Test(pod_takes, what_is_beyond_the_caps_is_named)
{
    cleanup_str struct str spec = STR_INIT(65536);
    str_add(&spec, "'containers':[{'resources':{'requests':{'a/0':'1'");
    for (unsigned i = 1; i <= POD_TAKES_RESOURCES_MAX; i++)
        str_addf(&spec, ",'a/%u':'1'", i);
    str_add(&spec, "}}}]");
    struct pod_takes t = read_spec(str_text(&spec));
    cr_expect_eq(t.n_amounts, POD_TAKES_RESOURCES_MAX);
    cr_assert_not_null(t.more);
    cr_expect_str_eq(t.more, "more than 16 kinds of resources");
    pod_takes_fini(&t);
    str_reset(&spec);
    str_add(&spec, "'containers':[{'ports':[{'hostPort':1}");
    for (unsigned i = 1; i <= POD_TAKES_PORTS_MAX; i++)
        str_addf(&spec, ",{'hostPort':%u}", i + 1);
    str_add(&spec, "]}]");
    t = read_spec(str_text(&spec));
    cr_expect_eq(t.n_ports, POD_TAKES_PORTS_MAX);
    cr_assert_not_null(t.more);
    cr_expect_str_eq(t.more, "more than 64 host ports");
    pod_takes_fini(&t);
}

Test(pod_takes, what_is_no_pod_is_refused)
{
    struct pod_takes t;
    struct error err;
    cr_expect_eq(pod_takes_read("[]", 2, &t, &err), -EINVAL);
    cr_expect_eq(pod_takes_read("{", 1, &t, &err), -EINVAL);
    cr_expect_eq(pod_takes_read("", 0, &t, &err), -EINVAL);
}
