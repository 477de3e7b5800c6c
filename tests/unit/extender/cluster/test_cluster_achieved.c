#include <criterion/criterion.h>
#include <string.h>

#include "extender/cluster/cluster_parts.h"
#include "lib/base/str.h"
#include "lib/io/log.h"

static struct achieved_book *book;
static struct cluster_achieved *c;
static const struct reflector_handler *const on = &cluster_achieved_handler;

static void start(void)
{
    log_set_level(LOG_ERROR + 1);
    book = achieved_book_create();
    c = cluster_achieved_create(book);
}

static void stop(void)
{
    cluster_achieved_destroy(c);
    achieved_book_destroy(book);
}

TestSuite(cluster_achieved, .init = start, .fini = stop);

/* A ConfigMap with this report as its text; NULL: without one. */
static void object(const char *node, const char *report, struct str *out)
{
    str_addf(out, "{\"metadata\":{\"name\":\"%s\"}", node);
    if (report) {
        str_add(out, ",\"data\":{\"report\":");
        str_add_json(out, report);
        str_add(out, "}");
    }
    str_add(out, "}");
}

static void put(const char *node, const char *report)
{
    cleanup_str struct str json = STR_INIT(65536);
    object(node, report, &json);
    on->put(c, json.data, json.size);
}

static size_t n_pods(const char *node)
{
    cleanup_with(achieved_report) struct achieved_report *r =
        achieved_book_get(book, node);
    return r ? r->n_pods : SIZE_MAX;
}

#define ONE(node)                                                          \
    "{\"node\":\"" node "\",\"pods\":[{\"namespace\":\"a\",\"name\":\"b\"" \
    "}]}"

Test(cluster_achieved, follows_the_report_of_each_node)
{
    cleanup_str struct str json = STR_INIT(65536);
    on->list(c);
    put("n1", ONE("n1"));
    put("n2", "{\"node\":\"n2\",\"pods\":[]}");
    on->listed(c);
    cr_expect_eq(n_pods("n1"), 1);
    cr_expect_eq(n_pods("n2"), 0);
    put("n2", ONE("n2"));
    cr_expect_eq(n_pods("n2"), 1);
    object("n1", NULL, &json);
    on->gone(c, json.data, json.size);
    cr_expect_eq(n_pods("n1"), SIZE_MAX);
    on->list(c); /* after a gap without n2 */
    put("n1", ONE("n1"));
    on->listed(c);
    cr_expect_eq(n_pods("n1"), 1);
    cr_expect_eq(n_pods("n2"), SIZE_MAX);
}

/* What is no report is not known, and neither is what was before. */
Test(cluster_achieved, takes_no_report_for_unknown)
{
    static const char *const bad[] = {
        NULL, "", "{}", "{\"node\":\"n1\"}", ONE("n2"), "\x01"};
    on->list(c);
    on->listed(c);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        put("n1", ONE("n1"));
        cr_expect_eq(n_pods("n1"), 1);
        put("n1", bad[i]);
        cr_expect_eq(n_pods("n1"), SIZE_MAX, "%zu", i);
    }
    cr_expect_eq(n_pods("n2"), SIZE_MAX, "of another node");
    on->put(c, "{\"metadata\":{}}", 15);
    on->put(c, "[", 1);
    on->gone(c, "{}", 2);
}
