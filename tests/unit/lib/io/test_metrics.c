#include "lib/io/metrics.h"

#include <criterion/criterion.h>
#include <pthread.h>

#include "lib/base/mem.h"

enum { BINDS, NODES, WAIT, PLAIN, N_FAMILIES };

static const struct metric_family families[] = {
    [BINDS] = {"x_binds_total", "Binds.", METRIC_COUNTER, {"result", "who"}},
    [NODES] = {"x_nodes", "Nodes.", METRIC_GAUGE, {"status"}},
    [WAIT] = {"x_wait_seconds", "Waiting.", METRIC_DURATION, {"route"}},
    [PLAIN] = {"x_plain_total", "Plain.", METRIC_COUNTER, {NULL}},
};

static const char *const bound[] = {"bound", "a"};
static const char *const odd[] = {"a \"quoted\" \\ one\n", "b"};

Test(metrics, counts)
{
    struct metrics *m = metrics_create(families, N_FAMILIES);
    cr_assert_eq(metrics_get(m, BINDS, bound), 0);
    metrics_add(m, BINDS, bound, 1);
    metrics_add(m, BINDS, bound, 41);
    cr_assert_eq(metrics_get(m, BINDS, bound), 42);
    const char *ready = "ready";
    metrics_set(m, NODES, &ready, -3);
    cr_assert_eq(metrics_get(m, NODES, &ready), -3);
    metrics_count(m, PLAIN, NULL);
    cr_assert_eq(metrics_get(m, PLAIN, NULL), 1);
    metrics_count(NULL, PLAIN, NULL);
    metrics_destroy(m);
    metrics_destroy(NULL);
}

Test(metrics, writes_the_text_format)
{
    struct metrics *m = metrics_create(families, N_FAMILIES);
    struct str out = STR_INIT(STR_MAX_DEFAULT);
    const char *route = "filter";
    metrics_add(m, BINDS, odd, 2);
    metrics_add(m, BINDS, bound, 1);
    metrics_observe(m, WAIT, &route, 25000);
    metrics_observe(m, WAIT, &route, 25001);
    metrics_observe(m, WAIT, &route, 2000000001);
    metrics_write(m, &out);
    static const char head[] =
        "# HELP x_binds_total Binds.\n# TYPE x_binds_total counter\n"
        "x_binds_total{result=\"a \\\"quoted\\\" \\\\ one\\n\",who=\"b\"} 2\n"
        "x_binds_total{result=\"bound\",who=\"a\"} 1\n"
        "# HELP x_nodes Nodes.\n# TYPE x_nodes gauge\n"
        "# HELP x_wait_seconds Waiting.\n# TYPE x_wait_seconds histogram\n"
        "x_wait_seconds_bucket{route=\"filter\",le=\"0.000025\"} 1\n"
        "x_wait_seconds_bucket{route=\"filter\",le=\"0.00005\"} 2\n";
    static const char tail[] =
        "x_wait_seconds_bucket{route=\"filter\",le=\"1\"} 2\n"
        "x_wait_seconds_bucket{route=\"filter\",le=\"+Inf\"} 3\n"
        "x_wait_seconds_sum{route=\"filter\"} 2.000050002\n"
        "x_wait_seconds_count{route=\"filter\"} 3\n"
        "# HELP x_plain_total Plain.\n# TYPE x_plain_total counter\n"
        "x_plain_total 0\n";
    cr_assert_eq(strncmp(out.data, head, strlen(head)), 0, "%s", out.data);
    cr_assert(strstr(out.data, tail), "%s", out.data);
    str_fini(&out);
    metrics_destroy(m);
}

Test(metrics, is_bounded)
{
    struct metrics *m = metrics_create(families, N_FAMILIES);
    struct str out = STR_INIT(STR_MAX_DEFAULT);
    for (int i = 0; i < METRICS_SERIES_MAX + 10; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "%d", i);
        metrics_count(m, NODES, name);
    }
    metrics_write(m, &out);
    cr_assert(strstr(out.data, "\nbiga_metrics_dropped_total 10\n"));
    cr_assert(strstr(out.data, "{status=\"1023\"} 1\n"));
    cr_assert_null(strstr(out.data, "{status=\"1024\"}"));
    str_fini(&out);
    metrics_destroy(m);
}

static void *count_many(void *arg)
{
    for (int i = 0; i < 10000; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "%d", i % 100);
        metrics_count(arg, NODES, name);
    }
    return NULL;
}

Test(metrics, loses_nothing_between_threads)
{
    struct metrics *m = metrics_create(families, N_FAMILIES);
    pthread_t threads[4];
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        pthread_create(&threads[i], NULL, count_many, m);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 100; i++) {
        char name[16];
        const char *label = name;
        (void)snprintf(name, sizeof name, "%d", i);
        cr_assert_eq(metrics_get(m, NODES, &label), 400);
    }
    metrics_destroy(m);
}

Test(metrics, buckets_of_waits_reach_a_day)
{
    static const struct metric_family waits[] = {
        {"x_wait_seconds", "Waiting.", METRIC_WAIT, {NULL}}};
    struct metrics *m = metrics_create(waits, 1);
    struct str out = STR_INIT(STR_MAX_DEFAULT);
    metrics_observe(m, 0, NULL, 3000000000);
    metrics_observe(m, 0, NULL, 86400000000001);
    metrics_write(m, &out);
    static const char *const has[] = {
        "# TYPE x_wait_seconds histogram\n",
        "x_wait_seconds_bucket{le=\"2.5\"} 0\n",
        "x_wait_seconds_bucket{le=\"5\"} 1\n",
        "x_wait_seconds_bucket{le=\"86400\"} 1\n",
        "x_wait_seconds_bucket{le=\"+Inf\"} 2\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(has); i++)
        cr_assert_not_null(strstr(str_text(&out), has[i]), "%s in %s", has[i],
                           str_text(&out));
    str_fini(&out);
    metrics_destroy(m);
}

Test(metrics, writes_families_that_are_in_no_table)
{
    static const struct metric_family leaf = {
        "x_leaf", "By leaf.", METRIC_GAUGE, {"leaf", "what"}};
    struct str out = STR_INIT(STR_MAX_DEFAULT);
    metrics_write_head(&leaf, &out);
    metrics_write_sample(&leaf, (const char *[]){"a\"b", "cards"}, -7, &out);
    cr_assert_str_eq(str_text(&out),
                     "# HELP x_leaf By leaf.\n# TYPE x_leaf gauge\n"
                     "x_leaf{leaf=\"a\\\"b\",what=\"cards\"} -7\n");
    str_fini(&out);
}
