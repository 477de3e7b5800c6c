#include "advertiser/act/stream/order.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "lib/base/mem.h"

static struct orders got;
static struct error err;

static void tear_down(void)
{
    orders_fini(&got);
}

TestSuite(order, .fini = tear_down);

static int take(const char *json)
{
    orders_fini(&got);
    return orders_read(json, strlen(json), &got, &err);
}

/* One, with these members besides those that all have. */
static const struct order *one(const char *members)
{
    cleanup_free char *json = xasprintf(
        "{\"more\":1,\"streams\":[{\"id\":\"0a1f\",\"namespace\":\"lab\","
        "\"name\":\"x.y\",%s,\"new\":[]}]}",
        members);
    cr_assert_eq(take(json), 0, "%s", err.text);
    cr_assert_eq(got.n, 1);
    cr_expect_str_eq(got.list[0]->id, "0a1f");
    return got.list[0];
}

Test(order, of_a_command)
{
    const struct order *o = one(
        "\"kind\":\"exec\",\"uid\":\"u-1\",\"container\":\"main\","
        "\"command\":[\"sh\",\"-c\",\"\"],\"stdin\":true,\"stdout\":true,"
        "\"stderr\":true,\"tty\":true");
    cr_expect_str_eq(o->fault, "");
    cr_expect_eq(o->kind, ORDER_EXEC);
    cr_expect_str_eq(o->namespace, "lab");
    cr_expect_str_eq(o->name, "x.y");
    cr_expect_str_eq(o->uid, "u-1");
    cr_expect_str_eq(o->container, "main");
    cr_assert_eq(o->n_argv, 3);
    cr_expect_str_eq(o->argv[1], "-c");
    cr_expect_str_eq(o->argv[2], "");
    cr_expect_null(o->argv[3]);
    cr_expect(o->in && o->out && !o->err && o->tty);
}

Test(order, of_a_log)
{
    const struct order *o = one(
        "\"kind\":\"log\",\"follow\":true,\"previous\":true,\"tailLines\":7,"
        "\"timestamps\":true,\"sinceSeconds\":60,\"limitBytes\":1000,"
        "\"sinceTime\":\"1970-01-01T00:00:01Z\",\"container\":\"\"");
    cr_expect_str_eq(o->fault, "");
    cr_expect(o->follow && o->previous && o->log.timestamps);
    cr_expect_eq(o->log.tail_lines, 7);
    cr_expect_eq(o->log.limit_bytes, 1000);
    cr_expect_eq(o->log.since_ns, 1000000000);
    cr_expect_eq(o->since_s, 60);
    o = one("\"kind\":\"log\",\"tailLines\":null");
    cr_expect_str_eq(o->fault, "");
    cr_expect_eq(o->log.tail_lines, -1);
    cr_expect_eq(o->log.since_ns, INT64_MIN);
}

Test(order, of_ports)
{
    const struct order *o =
        one("\"kind\":\"portforward\",\"ports\":[80,65535]");
    cr_expect_str_eq(o->fault, "");
    cr_assert_eq(o->n_ports, 2);
    cr_expect_eq(o->ports[1], 65535);
}

Test(order, that_cannot_be_has_a_fault)
{
    static const struct {
        const char *members, *fault;
    } bad[] = {
        {"\"kind\":\"cp\"", "kind: is \"cp\", must be exec"},
        {"\"kind\":\"exec\",\"stdout\":true", "command: is empty"},
        {"\"kind\":\"exec\",\"command\":[1],\"stdout\":true",
         "command: must be"},
        {"\"kind\":\"exec\",\"command\":[\"x\"]", "stdout: is false"},
        {"\"kind\":\"attach\"", "stdout: is false"},
        {"\"kind\":\"portforward\"", "ports: is empty"},
        {"\"kind\":\"portforward\",\"ports\":[0]", "ports: must be"},
        {"\"kind\":\"portforward\",\"ports\":[8.5]", "ports: must be"},
        {"\"kind\":\"log\",\"tailLines\":-2", "tailLines"},
        {"\"kind\":\"log\",\"sinceTime\":\"now\"", "sinceTime: \"now\" must"},
        {"\"kind\":\"log\",\"container\":\"A b\"", "container: \"A b\""},
        {"\"kind\":\"log\",\"uid\":\"/\"", "uid: \"/\""},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        const struct order *o = one(bad[i].members);
        cr_expect(strstr(o->fault, bad[i].fault), "%s: %s", bad[i].members,
                  o->fault);
    }
}

Test(order, without_an_id_is_no_answer)
{
    cr_expect_eq(take("{\"streams\":[]}"), 0);
    cr_expect_eq(got.n, 0);
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{\"streams\":{}}",
        "{\"streams\":[1]}",
        "{\"streams\":[{\"kind\":\"log\"}]}",
        "{\"streams\":[{\"id\":\"0a\"},{\"id\":\"0A\"}]}"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        cr_expect_eq(take(bad[i]), -EINVAL, "%s", bad[i]);
    cr_expect(strstr(err.text, "streams[1].id: \"0A\""), "%s", err.text);
}
