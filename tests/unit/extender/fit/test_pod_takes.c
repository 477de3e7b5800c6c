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
