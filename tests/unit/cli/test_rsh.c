#include "cli/pod/rsh.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/mem.h"

#define PAIR(rank, node, pods) \
    "{\"rank\":" rank ",\"node\":\"" node "\",\"members\":[" pods "]}"
#define POD(name, role) "{\"name\":\"" name "\",\"role\":\"" role "\"}"

static const char job[] = "{\"pairList\":[" PAIR(
    "0", "host-a",
    POD("r-0-xpu", "xpu") "," POD(
        "r-0",
        "host")) "," PAIR("1", "host-b",
                          POD("r-1",
                              "host")) "," PAIR("2", "host-a",
                                                POD("r-2",
                                                    "host")) "," PAIR("3",
                                                                      "host-c",
                                                                      POD("r-3-"
                                                                          "xpu",
                                                                          "xp"
                                                                          "u")) "]}";

static bool find(const char *text, const char *host, struct rsh_pod *ret_pod,
                 struct str *known)
{
    cleanup_with(json) cJSON *json = cJSON_Parse(text);
    struct rsh_pod pod = {0};
    bool found = rsh_find_pod(json, host, &pod, known);
    static char name[64], node[64];
    (void)snprintf(name, sizeof name, "%s", found ? pod.name : "");
    (void)snprintf(node, sizeof node, "%s", found ? pod.node : "");
    *ret_pod = (struct rsh_pod){name, node, pod.rank, pod.n_others};
    return found;
}

Test(rsh, a_pod_is_found_by_its_name_or_its_node)
{
    cleanup_str struct str known = STR_INIT(4096);
    struct rsh_pod pod;
    cr_assert(find(job, "r-2", &pod, &known));
    cr_expect_str_eq(pod.name, "r-2");
    cr_expect_str_eq(pod.node, "host-a");
    cr_expect_eq(pod.rank, 2);
    cr_expect_eq(pod.n_others, 0);
    cr_assert(find(job, "host-b", &pod, &known));
    cr_expect_str_eq(pod.name, "r-1");
    cr_expect_eq(pod.n_others, 0);
    cr_assert(find(job, "host-a", &pod, &known));
    cr_expect_str_eq(pod.name, "r-0");
    cr_expect_eq(pod.n_others, 1);
}

Test(rsh, xpu_pods_and_what_is_not_there_are_not_found)
{
    cleanup_str struct str known = STR_INIT(4096);
    struct rsh_pod pod;
    cr_expect(!find(job, "r-0-xpu", &pod, &known));
    cr_expect_str_eq(str_text(&known), "host-a, host-b, host-a, host-c");
    cr_expect(!find(job, "host-c", &pod, &known));
    cr_expect(!find("{}", "host-a", &pod, &known));
    cr_expect(!find("{\"pairList\":[1,{}]}", "", &pod, &known));
}

Test(rsh, only_this_host_streams)
{
    static const char *const bad[] = {
        "",
        "http://127.0.0.1/exec/x",
        "http://127.0.0.1:/x",
        "http://127.0.0.1:0/x",
        "http://127.0.0.1:65536/x",
        "http://127.0.0.1:80",
        "http://127.0.0.1:80@evil/x",
        "https://127.0.0.1:80/x",
        "http://192.0.2.1:80/x",
    };
    struct rsh_url url;
    struct error err = {0};
    cr_assert_eq(rsh_url_read("http://127.0.0.1:40000/exec/t", &url, &err), 0);
    cr_expect(!url.v6 && url.port == 40000);
    cr_expect_str_eq(url.path, "/exec/t");
    cr_assert_eq(rsh_url_read("http://[::1]:1/", &url, &err), 0);
    cr_expect(url.v6 && url.port == 1);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        cr_expect_eq(rsh_url_read(bad[i], &url, &err), -EINVAL, "%s", bad[i]);
        cr_expect(strstr(err.text, "stream_server_address"), "%s", err.text);
    }
}
