/* What may come next, with a server that has some things. */
#include "cli/complete.h"

#include <criterion/criterion.h>
#include <string.h>

#include "cli/base/names.h"
#include "cli/verbs.h"
#include "lib/base/mem.h"
#include "lib/http/httpd.h"

static void pods(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    str_add(
        httpd_reply(rq),
        "{\"items\":[{\"namespace\":\"default\",\"name\":\"ring-0\","
        "\"state\":\"running\"},{\"namespace\":\"lab\",\"name\":\"web\"}]}");
}

static void jobs(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    str_add(httpd_reply(rq),
            "{\"items\":[{\"namespace\":\"default\",\"name\":\"ring\"}]}");
}

static void nodes(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    str_add(httpd_reply(rq), "{\"items\":[{\"name\":\"host-a\",\"status\":"
                             "\"ready\"},{\"name\":\"rack\"}]}");
}

static void cards(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    str_add(httpd_reply(rq),
            "{\"items\":[{\"node\":\"host-a\",\"id\":\"card-0\",\"pci\":"
            "\"0000:01:00.0\",\"model\":\"BF3\"}]}");
}

/* One was applied, the other one kube-scheduler placed. */
static void allocations(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    str_add(httpd_reply(rq),
            "{\"items\":[{\"pod\":{\"namespace\":\"lab\",\"name\":\"web\"},"
            "\"node\":\"rack\"},{\"pod\":{\"namespace\":\"lab\",\"name\":"
            "\"solver-0\"},\"node\":\"host-a\"}]}");
}

static struct {
    struct httpd *server;
    char *url;
    struct cli c;
} at;

static void start(void)
{
    static const struct httpd_route routes[] = {
        {HTTPD_GET, "/v1/pods", pods, 0, "pods"},
        {HTTPD_GET, "/v1/jobs", jobs, 0, "jobs"},
        {HTTPD_GET, "/v1/nodes", nodes, 0, "nodes"},
        {HTTPD_GET, "/v1/cards", cards, 0, "cards"},
        {HTTPD_GET, "/v1/allocations", allocations, 0, "allocations"},
    };
    const struct httpd_config config = {.listen = "127.0.0.1:0",
                                        .routes = routes,
                                        .n_routes = ARRAY_LEN(routes),
                                        .threads = 1};
    struct error err;
    cr_assert_eq(httpd_start(&config, &at.server, &err), 0, "%s", err.text);
    at.url = xasprintf("http://127.0.0.1:%u", httpd_port(at.server));
    at.c = (struct cli){.set = {.server = at.url, .namespace = ""}};
}

static void stop(void)
{
    httpd_stop(at.server);
    free(at.url);
}

TestSuite(complete, .init = start, .fini = stop);

static void assert_argument(const char *takes, const char *begun,
                            const char *want)
{
    cleanup_str struct str out = STR_INIT(4096);
    complete_argument(&at.c, takes, begun, &out);
    cr_expect_str_eq(str_text(&out), want, "%s %s: %s", takes, begun,
                     str_text(&out));
}

Test(complete, names_are_asked_of_the_server)
{
    assert_argument("node", "h", "host-a\tready\n");
    assert_argument("pod", "",
                    "ring-0\trunning\nlab/web\nlab/solver-0\thost-a\n");
    assert_argument("pod", "default/", "default/ring-0\trunning\n");
    assert_argument("namespace", "", "default\nlab\n");
    assert_argument("shell", "f", "fish\n");
    assert_argument("frob", "", "");
    at.c.set.namespace = "lab";
    assert_argument("pod", "", "web\nsolver-0\thost-a\n");
    assert_argument("place", "", "host-a\tready\nrack\n");
    assert_argument("place", "host-a/", "host-a/0000:01:00.0\tBF3\n");
    assert_argument("place", "host",
                    "host-a\tready\nhost-a/0000:01:00.0\tBF3\n");
}

Test(complete, names_may_stand_behind_their_kinds)
{
    assert_argument("job|pod", "",
                    "job/ring\npod/ring-0\trunning\n"
                    "pod/lab/web\npod/lab/solver-0\thost-a\n");
    assert_argument("job|pod", "j", "job/ring\n");
    assert_argument("job|pod", "pod/r", "pod/ring-0\trunning\n");
    assert_argument("job|pod", "pod/lab/w", "pod/lab/web\n");
    assert_argument("job|pod|node", "node/", "node/host-a\tready\nnode/rack\n");
    assert_argument("job|pod", "po/", "");
    assert_argument("job|pod", "pods/", "");
}

Test(complete, a_slip_of_a_name_is_understood)
{
    static const char *const cases[][3] = {
        {"node", "hots-a", "host-a"},
        {"pod", "default/rign-0", "default/ring-0"},
        {"pod", "default/web", "lab/web"},
        {"pod", "lba/web", "lab/web"},
        {"pod", "default/slover-0", "lab/solver-0"},
        {"card", "hots-a/0000:01:00.0", "host-a/0000:01:00.0"},
        {"card", "host-a/0000:01:00.1", "host-a/0000:01:00.0"},
        {"card", "elsewhere/0000:01:00.0", NULL},
        {"place", "hots-a", "host-a"},
        {"place", "hots-a/0000:01:00.0", "host-a/0000:01:00.0"},
        {"node", "elsewhere", NULL},
        {"frob", "host-a", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_str struct str name = STR_INIT(256);
        bool any = names_guess(&at.c, cases[i][0], cases[i][1], &name);
        cr_expect_eq(any, cases[i][2] != NULL, "%s", cases[i][1]);
        cr_expect_str_eq(str_text(&name), cases[i][2] ? cases[i][2] : "");
    }
}

/* Every word of the table is one that is known. */
Test(complete, the_table_takes_what_is_known)
{
    static const char known[] =
        " node card pod job host-card host-pod file "
        "command shell card-command deletable top-kind place ";
    for (size_t i = 0; i < n_verbs_about; i++) {
        cleanup_free char *takes = xstrdup(verbs_about[i].takes);
        for (char *rest = takes, *word; (word = strsep(&rest, " |+"));) {
            cleanup_free char *padded = xasprintf(" %s ", word);
            cr_expect(!*word || strstr(known, padded), "%s: %s",
                      verbs_about[i].name, word);
        }
    }
}
